// SPDX-License-Identifier: MIT
//
// The accesses of a consumer between the mmap of its first buffers and its first sleep, as steps of
// a row (steps.h). Knows no case.
#ifndef KMES_CONFORMANCE_PLAY_FIRST_ACCESSES_H_
#define KMES_CONFORMANCE_PLAY_FIRST_ACCESSES_H_

#include "conformance/stage/stage.h"

namespace kmes::conformance {

// Emits an event on the first CPU before the first access to its metadata page, on the second CPU
// before the second access, and so on. Each CPU has one first sleep, so this covers as many
// accesses as there are CPUs. To be played before the start.
struct EmitAtFirstAccesses {
    void operator()(Stage& stage) const;
};

// Ends EmitAtFirstAccesses: later accesses no longer stop the testee.
struct LeaveFirstAccesses {
    void operator()(Stage& stage) const;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_FIRST_ACCESSES_H_
