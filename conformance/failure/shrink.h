// SPDX-License-Identifier: MIT
//
// The smallest schedule that still fails, and the nearest one that passes: a search that knows
// schedules and nothing of what plays them.
#ifndef KMES_CONFORMANCE_FAILURE_SHRINK_H_
#define KMES_CONFORMANCE_FAILURE_SHRINK_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "conformance/model/schedule.h"

namespace kmes::conformance {

enum class Trial {
    fails,   // in the way that is looked for
    passes,  // soundly
    other,   // fails in another way, or shows nothing
};

using PlaySchedule = std::function<Trial(const Schedule&)>;

struct ShrinkLimits {
    std::uint32_t runs = 300;
    // How often the first schedule is played until it fails; and how often one must pass, in a row,
    // before it is called passing.
    std::uint32_t runs_to_fail = 5;
    std::uint32_t runs_to_pass = 2;
};

struct Shrunk {
    bool fails = false;  // the schedule failed again; without that the rest says nothing
    Schedule smallest;
    std::optional<Schedule> nearest_passing;
    std::string difference;  // of it from the smallest, in words; empty: there is none
    std::uint32_t runs = 0;
    bool whole = false;  // false: the limit of runs ended the search
};

// In this order: fewest moves; the simplest action (as Action lists them); the smallest parameter;
// the earliest point. `points` are the accesses of a run of the smallest schedule in their order,
// for "one point earlier or later": looked at when that schedule is known, so that `play` can fill
// it. Where they do not have the point, it is one occurrence of the same access.
Shrunk shrink(const Schedule& failing, const PlaySchedule& play,
              const std::vector<AccessPoint>& points, const ShrinkLimits& limits = {});

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_FAILURE_SHRINK_H_
