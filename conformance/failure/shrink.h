// SPDX-License-Identifier: MIT
//
// Searches for the smallest schedule that still fails, and for the nearest one that passes. Knows
// schedules, but not what plays them.
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
    fails,   // in the same way as the first failure
    passes,  // the verdict is a pass
    other,   // fails in another way, or proves nothing
};

using PlaySchedule = std::function<Trial(const Schedule&)>;

struct ShrinkLimits {
    std::uint32_t runs = 300;
    // How often the first schedule is played until it fails; and how many times in a row a schedule
    // must pass before it counts as passing.
    std::uint32_t runs_to_fail = 5;
    std::uint32_t runs_to_pass = 2;
};

struct Shrunk {
    bool fails = false;  // the schedule failed again; if not, the other members are meaningless
    Schedule smallest;
    std::optional<Schedule> nearest_passing;
    std::string difference;  // between nearest_passing and smallest, in words; empty: none
    std::uint32_t runs = 0;
    bool whole = false;  // false: the limit of runs ended the search
};

// Smaller means, in this order: fewer moves; a simpler action (in the order of Action); a smaller
// parameter; an earlier point. `points` are the accesses of a run of the smallest schedule, in
// order; they say which point is one earlier or later. They are read only after that schedule is
// known, so `play` can fill them. If they lack the point, the neighbours are other occurrences of
// the same access.
Shrunk shrink(const Schedule& failing, const PlaySchedule& play,
              const std::vector<AccessPoint>& points, const ShrinkLimits& limits = {});

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_FAILURE_SHRINK_H_
