// SPDX-License-Identifier: MIT
//
// Situations before the store to need_wake and the second check, other than a wake, a drain and an
// empty ring. A consumer that omits a barrier or a check only then is correct in every plain
// iteration.
#ifndef KMES_CONFORMANCE_PLAY_UNUSUAL_ITERATION_H_
#define KMES_CONFORMANCE_PLAY_UNUSUAL_ITERATION_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "conformance/stage/stage.h"

namespace kmes::conformance {

enum class Disturbance {
    given_up,      // an event came just after the store to need_wake, and the second check found it
    lapped,        // all unread events had been overwritten
    torn,          // as lapped, but during the copy: between the two loads of tail_pos
    torn_whole,    // as torn, but the copied bytes have the sizes of a whole event
    many,          // the consumer has just delivered hundreds of events in one iteration
    new_buffer,    // the consumer has just moved to the next buffer, and delivered its events
    empty_buffer,  // the consumer has just moved to the next buffer, which is empty
    replaced_meanwhile,  // as empty_buffer, but that buffer was replaced before the first load
    timed_out,           // the wait returned ETIMEDOUT; without a timeout: a spurious wake
    refused,      // the wait returned EAGAIN: an event came just before the kernel loaded the word
    interrupted,  // the wait returned EINTR
};

// "after a lap", for a message.
std::string_view describe(Disturbance disturbance);

// Replaces all buffers when the next kmes_attach has returned them, before the testee sees the
// result.
void replace_at_the_next_attach(Stage& stage);

// These iterations need rings of one CPU with this capacity.
inline constexpr std::uint64_t kUnusualCapacity = 65536;

// One such iteration of the sleeping consumer of CPU 0. Until the disturbance is made, the caller
// must report every access to the metadata page of the current buffer, before and after it.
class UnusualIteration {
  public:
    UnusualIteration(Stage& stage, Disturbance disturbance)
        : stage_(stage), disturbance_(disturbance) {}

    // Wakes the consumer.
    void begin();
    // Call it before an access. Returns true if this access comes after the disturbance. A new
    // buffer counts when its G record and the record of an event that only this buffer holds are
    // written. The consumer has then read its generation, so E19 does not excuse a missed later
    // swap.
    bool check_before(const GuardHit& hit);
    // Call it after an access. Returns true if the producer has made the disturbance now.
    bool make_after(const GuardHit& hit);

  private:
    void wake_with(std::int64_t result);
    std::uint8_t need_wake() const;

    Stage& stage_;
    Disturbance disturbance_;
    bool is_made_ = false;
    bool is_ready_ = false;            // the buffer in question is the current one
    std::size_t reported_before_ = 0;  // changes
    std::uint64_t torn_at_ = 0;
};

// Calls `play`. If it ends with a finding, adds the disturbance to the message.
void play_after(Disturbance disturbance, const std::function<void()>& play);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_UNUSUAL_ITERATION_H_
