// SPDX-License-Identifier: MIT
//
// Runs a case with all monitors.
#ifndef KMES_CONFORMANCE_MONITORS_RUN_H_
#define KMES_CONFORMANCE_MONITORS_RUN_H_

#include "conformance/model/case.h"

namespace kmes::conformance {

// run_with_monitors of conformance/stage/run.h, with make_monitors of monitors.h.
CaseOutcome run_on_stage(const Case& the_case, const StageSettings& settings);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MONITORS_RUN_H_
