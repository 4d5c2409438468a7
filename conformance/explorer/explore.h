// SPDX-License-Identifier: MIT
//
// The search. It plays a scenario without moves, then each producer action before each access of
// the testee, then pairs of moves, and then random schedules. Each play has a process of its own.
// The first failure ends the search. Workers play in parallel, one on each processor. A run with a
// part of the search (StageSettings::part) plays its own moves, pairs and cells, and its own random
// schedules.
#ifndef KMES_CONFORMANCE_EXPLORER_EXPLORE_H_
#define KMES_CONFORMANCE_EXPLORER_EXPLORE_H_

#include "conformance/model/case.h"
#include "conformance/model/settings.h"
#include "conformance/play/player.h"

namespace kmes::conformance {

// Explores one scenario. `share`: its part of the time of --explore (0 to 1).
CaseOutcome explore(const Case& the_case, const StageSettings& settings, const Scenario& scenario,
                    double share);

// Plays one schedule, for `replay`.
CaseOutcome play_schedule(const Case& the_case, const StageSettings& settings,
                          const Scenario& scenario, const Schedule& schedule);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_EXPLORE_H_
