// SPDX-License-Identifier: MIT
//
// Plays an action before the k-th access of a woken consumer to chosen pages of chosen CPUs. Knows
// no case.
#ifndef KMES_CONFORMANCE_PLAY_ACCESS_STEP_H_
#define KMES_CONFORMANCE_PLAY_ACCESS_STEP_H_

#include <cstdint>
#include <functional>
#include <vector>

#include "conformance/play/play.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {

// The maximum number of accesses after the wake or after the action. A consumer that makes more
// spins, and is not stopped any more.
inline constexpr std::uint64_t kStepAccessesAtMost = 160;

struct AccessStep {
    std::vector<std::uint32_t> cpus;
    std::uint64_t first_page = 0;
    std::uint64_t pages = 1;
    std::function<void()> wake;
    std::function<void(const GuardHit&)> act;
};

// Wakes the sleeping consumer with the events of `wake`, and calls `act` before its k-th access
// (counted from 1). Accesses to `pages` pages from `first_page` on count, in the buffers of `cpus`.
// Afterwards everything is delivered and the consumer sleeps again. Returns false if there is no
// k-th access.
bool act_at_step(Stage& stage, const AccessStep& step, std::uint64_t k);

// Calls act_at_step for k = 1, 2, ... until there is no k-th access.
void act_at_every_step(Stage& stage, const AccessStep& step, const WalkChoice& choice = {});

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_ACCESS_STEP_H_
