// SPDX-License-Identifier: MIT
//
// A schedule: at which accesses of the testee the producer acts, and how. Plain data, so that a
// failure can be written to a file, run again and made smaller. Knows no testee and no way to run.
#ifndef KMES_CONFORMANCE_FAILURE_SCHEDULE_H_
#define KMES_CONFORMANCE_FAILURE_SCHEDULE_H_

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "conformance/oracle/operations.h"

namespace kmes::conformance {

// What a move comes before.
enum class PointKind {
    access,  // of memory
    wait,    // the entry into a futex wait on the word of a CPU: the kernel has not looked yet
    sleep,   // nothing: a phase begins, in which everything is delivered and everybody sleeps
};

// Which access of the testee is meant, or which other moment. It is named by what it touches and
// not by the instruction, so that it is the same one in every run, wherever the program was loaded:
// "in phase 2, before the 3rd 8-byte read at offset 64 of CPU 0's buffer".
struct AccessPoint {
    std::uint32_t phase = 0;         // of the scenario: counted from 0 (attach to first sleep)
    std::uint32_t cpu = 0;           // whose buffer
    std::uint64_t offset_bytes = 0;  // in the layout of 5.1.5; of data: the offset in the region's
                                     // first copy, plus 4096
    std::uint32_t size_bytes = 0;
    bool is_write = false;
    std::uint64_t occurrence = 1;   // counted from 1 within the phase
    std::uint32_t split_bytes = 0;  // act in the middle of this access, behind so many bytes of it
    PointKind kind = PointKind::access;  // a wait: offset_bytes 128, size_bytes 4; sleep: both 0

    auto operator<=>(const AccessPoint&) const = default;
};

// What the producer, or the scheduler, does at an access point.
enum class Action {
    nothing,
    emit,        // one event, of `parameter` bytes (0: 70)
    burst,       // as many small events as half of the capacity holds
    batch,       // three events, published at once
    drop,        // a sequence number without an event
    lap_part,    // the older part of the buffer is overwritten
    lap,         // all of it, once
    laps,        // all of it, several times
    grow,        // a resize to twice the capacity, and an event
    shrink,      // a resize to half of it (never below 64 KiB), and an event
    swap,        // a resize to the same capacity, without an event
    swap_twice,  // two of them, without an event between; of all four, `parameter` says where the
                 // positions of the new buffers are: 0 where they were, 1 higher by 1000, 2 from 0
    nudge,       // of a retired buffer, where there is one (E19)
    wake,        // a wake without an event
    reserve,     // the tail makes room for an event, which is published `parameter` accesses later
    tear,        // everything is overwritten; where the header was now stand sizes of `parameter`
    hold,      // this thread is held until the others have done all that they can, while events of
               // `parameter` bytes come (0: small ones)
    overtake,  // tail_pos moves exactly to the end of the event that is being read, or of the
               // `parameter`-th one behind it
    write_over,  // as overtake, for the event that is being read, by one that is published
                 // `parameter` accesses later
    yield,       // this thread is held until the others have made `parameter` accesses, or sleep
};

struct Move {
    AccessPoint point;
    Action action = Action::nothing;
    std::uint64_t parameter = 0;
    std::uint32_t further = 0;         // on the CPU that is so many behind the point's
    Written written = Written::whole;  // reserve, write_over: until the event is published

    auto operator<=>(const Move&) const = default;
};

// `scenario` names the play into which the moves come (conformance/explorer/scenarios.h). A
// schedule that is drawn makes moves that follow from the seed, and not those that stand here.
struct Schedule {
    std::string scenario;
    std::uint64_t seed = 0;
    std::vector<Move> moves;  // in the order in which their points come
    bool drawn = false;

    bool operator==(const Schedule&) const = default;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_FAILURE_SCHEDULE_H_
