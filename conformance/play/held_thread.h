// SPDX-License-Identifier: MIT
//
// Acts while one thread of the consumer is stopped at an access to CPU 0's buffer. Other threads
// may run meanwhile. Knows no case.
#ifndef KMES_CONFORMANCE_PLAY_HELD_THREAD_H_
#define KMES_CONFORMANCE_PLAY_HELD_THREAD_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>

#include "conformance/stage/stage.h"

namespace kmes::conformance {

enum class AccessPlace {
    before,          // before the access to the current buffer
    after,           // after it, and before the thread makes its next step
    in_next_buffer,  // before an access to a buffer that the consumer maps after the wake
};

// The n-th access to one of these pages of CPU 0's buffer. Page 0 is the metadata.
struct HeldAccess {
    std::uint64_t first_page = 0;
    std::uint64_t pages = 1;
    std::uint64_t number = 1;
    AccessPlace place = AccessPlace::before;
};

// Calls `wake`, and `act` with the thread that makes the access. Returns when the consumer sleeps
// again: false if it made no such access.
bool act_at_held_access(Stage& stage, const HeldAccess& access, const std::function<void()>& wake,
                        const std::function<void(pid_t thread)>& act);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_HELD_THREAD_H_
