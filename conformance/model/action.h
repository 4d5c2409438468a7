// SPDX-License-Identifier: MIT
//
// The actions of the producer and of the scheduler. Plain data.
#ifndef KMES_CONFORMANCE_MODEL_ACTION_H_
#define KMES_CONFORMANCE_MODEL_ACTION_H_

namespace kmes::conformance {

// An action of the producer or the scheduler at an access point.
enum class Action {
    nothing,
    emit,        // one event of `parameter` bytes (0: 70)
    burst,       // as many small events as fit into half of the capacity
    batch,       // three events, published at once
    drop,        // a sequence number without an event
    lap_part,    // overwrite the older part of the buffer
    lap,         // overwrite all of it, once
    laps,        // overwrite all of it, several times
    grow,        // a resize to twice the capacity, and an event
    shrink,      // a resize to half of it (never below 64 KiB), and an event
    swap,        // a resize to the same capacity, without an event
    swap_twice,  // two swaps without an event between
    nudge,       // of a retired buffer, if there is one (E19)
    wake,        // a wake without an event
    reserve,     // the tail makes room for an event, which is published `parameter` accesses later
    tear,        // overwrite everything, and put sizes of kind `parameter` at the place of the
                 // header
    hold,  // hold this thread until the others have done all they can; emit events of `parameter`
           // bytes (0: small)
    overtake,    // tail_pos moves exactly to the end of the event that is being read, or of the
                 // `parameter`-th event after it
    write_over,  // overtake the event that is being read, and publish the new event `parameter`
                 // accesses later
    yield,       // hold this thread until the others have made `parameter` accesses, or sleep
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_ACTION_H_
