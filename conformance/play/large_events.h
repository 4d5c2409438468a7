// SPDX-License-Identifier: MIT
//
// Events of up to half of the largest ring, as steps of a row (steps.h). They are as large as the
// memory of the machine allows. If that is not the largest size, the case says so.
#ifndef KMES_CONFORMANCE_PLAY_LARGE_EVENTS_H_
#define KMES_CONFORMANCE_PLAY_LARGE_EVENTS_H_

#include <cstdint>

#include "conformance/play/steps.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {

// The file of one buffer is sparse: only written pages take memory. Ends a case as unsupported if
// the machine has less than `bytes` of free memory. `buffers_mebibytes`: of the buffers that need
// it.
struct RequireMemory {
    std::uint64_t bytes;
    std::uint64_t buffers_mebibytes;

    void operator()(Stage& stage) const;
};

// Replaces the buffer of the current CPU, and moves its positions. The position `back` bytes before
// write_pos becomes `to`.
struct SwapAndMove {
    std::uint64_t capacity_bytes;
    std::uint64_t to;
    std::uint64_t back = 0;

    void operator()(Stage& stage, std::uint32_t cpu) const;
};

// Emits an event of each power of two from 2 MiB on, in a ring of twice its size: across the end of
// the data region and, if it is not the largest, within it. If the testee needs many seconds for
// such a payload (100 ns for a byte, as in Python), the header gets most of these bytes, or the
// event is left out. Needs one CPU.
struct EmitLargeEvents {
    void operator()(Stage& stage) const;
};

// Emits the largest event, and overwrites it at the first access to its second half, by an event of
// the same size. Needs one CPU.
struct TearLargestEvent {
    void operator()(Stage& stage) const;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_LARGE_EVENTS_H_
