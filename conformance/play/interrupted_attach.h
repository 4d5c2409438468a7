// SPDX-License-Identifier: MIT
//
// Resizes in the middle of an attach: after an attach, after an mmap, and between the system calls
// of one thread (E14, E19).
#ifndef KMES_CONFORMANCE_PLAY_INTERRUPTED_ATTACH_H_
#define KMES_CONFORMANCE_PLAY_INTERRUPTED_ATTACH_H_

#include <cstdint>

#include "conformance/model/case.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {

// A step of a row (steps.h) with one CPU, which sleeps. Lets it move to a new buffer, and replaces
// that buffer at the k-th step of the move, for k = 1, 2, ... until the move has no such step. A
// step is a served kmes_attach, an mmap, or an access to the mapped page.
struct ResizeInAttach {
    std::uint64_t steps_at_most = 60;

    void operator()(Stage& stage) const;
};

// A script with two CPUs. While both move to new buffers, holds one thread after its k-th attach or
// mmap, for k up to `steps`. Replaces both buffers by larger or smaller ones, and lets another
// thread move on to those. Then does the same before the k-th system call after the attach, for k
// up to `calls`, when the thread has released its locks.
struct HoldInAttach {
    std::uint64_t steps = 4;
    std::uint64_t calls = 8;

    CaseOutcome operator()(Stage& stage) const;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_INTERRUPTED_ATTACH_H_
