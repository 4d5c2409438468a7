// SPDX-License-Identifier: MIT
//
// An access of the testee, or another moment, at which the producer can act. Plain data.
#ifndef KMES_CONFORMANCE_MODEL_ACCESS_POINT_H_
#define KMES_CONFORMANCE_MODEL_ACCESS_POINT_H_

#include <compare>
#include <cstdint>

namespace kmes::conformance {

// The kind of moment before which a move happens.
enum class PointKind {
    access,  // of memory
    wait,    // entry into a futex wait on the word of a CPU: the kernel has not loaded the word yet
    sleep,   // a phase begins: everything is delivered and all threads sleep
    // Only schedules of rows have these (conformance/play/row_schedule.h). `phase` is the number of
    // the step.
    row_step,          // the producer step is played, `parameter` times if it has a count
    row_access,        // the actions of a walk come before the consumer's `occurrence`-th access
    row_first_access,  // the same, but counts only the first access of each instruction to each
                       // field
};

constexpr bool is_of_a_row(PointKind kind) {
    return kind >= PointKind::row_step;
}

// Identifies an access of the testee, or another moment. It names the memory and not the
// instruction, so it means the same access in every run, at any load address. An example: "in phase
// 2, before the 3rd 8-byte read at offset 64 of CPU 0's buffer".
struct AccessPoint {
    std::uint32_t phase = 0;  // of the scenario: counted from 0 (attach to first sleep)
    std::uint32_t cpu = 0;    // the CPU of the buffer
    // In the layout of 5.1.5; for data: in the first copy, counted from the buffer's start.
    std::uint64_t offset_bytes = 0;
    std::uint32_t size_bytes = 0;
    bool is_write = false;
    std::uint64_t occurrence = 1;        // counted from 1 within the phase
    std::uint32_t split_bytes = 0;       // act within this access, after this many of its bytes
    PointKind kind = PointKind::access;  // wait: offset_bytes 128, size_bytes 4; sleep: both 0

    auto operator<=>(const AccessPoint&) const = default;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_ACCESS_POINT_H_
