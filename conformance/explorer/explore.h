// SPDX-License-Identifier: MIT
//
// The search: a scenario is played once as it is; then every producer action at every access that
// the testee made, each in a process of its own; then pairs of moves, and schedules at random. The
// first failure ends it. Workers play in parallel, one on each processor.
#ifndef KMES_CONFORMANCE_EXPLORER_EXPLORE_H_
#define KMES_CONFORMANCE_EXPLORER_EXPLORE_H_

#include "conformance/model/case.h"
#include "conformance/model/settings.h"
#include "conformance/play/player.h"

namespace kmes::conformance {

// How much of the time of --explore this scenario may take (0 to 1).
CaseOutcome explore(const Case& the_case, const StageSettings& settings, const Scenario& scenario,
                    double share);

// One schedule alone, as `replay` wants it.
CaseOutcome play_schedule(const Case& the_case, const StageSettings& settings,
                          const Scenario& scenario, const Schedule& schedule);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_EXPLORE_H_
