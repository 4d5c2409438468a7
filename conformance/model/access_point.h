// SPDX-License-Identifier: MIT
//
// An access of the testee, or another moment of it, at which the producer can act. Plain data.
#ifndef KMES_CONFORMANCE_MODEL_ACCESS_POINT_H_
#define KMES_CONFORMANCE_MODEL_ACCESS_POINT_H_

#include <compare>
#include <cstdint>

namespace kmes::conformance {

// What a move comes before.
enum class PointKind {
    access,  // of memory
    wait,    // the entry into a futex wait on the word of a CPU: the kernel has not looked yet
    sleep,   // nothing: a phase begins, in which everything is delivered and everybody sleeps
    // The schedule of a row (conformance/play/row_schedule.h) has these. `phase` is the number of
    // the step.
    row_step,    // the producer step is played, `parameter` times where it has a count
    row_access,  // the actions of the walk come before the `occurrence`-th access of the consumer
    row_first_access,  // the same; only the first access of each instruction to each field counts
};

constexpr bool is_of_a_row(PointKind kind) {
    return kind >= PointKind::row_step;
}

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
    std::uint64_t occurrence = 1;        // counted from 1 within the phase
    std::uint32_t split_bytes = 0;       // act within this access, after that many of its bytes
    PointKind kind = PointKind::access;  // a wait: offset_bytes 128, size_bytes 4; sleep: both 0

    auto operator<=>(const AccessPoint&) const = default;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_ACCESS_POINT_H_
