// SPDX-License-Identifier: MIT
//
// Runs a case on a fresh stage, and checks the set-up before the first case. To run a case with all
// monitors: conformance/monitors/run.h.
#ifndef KMES_CONFORMANCE_STAGE_RUN_H_
#define KMES_CONFORMANCE_STAGE_RUN_H_

#include <string>

#include "conformance/model/case.h"
#include "conformance/stage/monitor.h"

namespace kmes::conformance {

// Makes a fresh stage (a fresh testee) for this case, runs it, tears it down. Whatever goes wrong
// comes back as an outcome; an exception that gets out is a suite error. nullptr: no monitors.
CaseOutcome run_with_monitors(const Case& the_case, const StageSettings& settings,
                              const MonitorFactory& make_monitors);

// How single accesses of this testee are seen, and why so, in one line: found out by a first, short
// run of it. Says so where it cannot be found out.
std::string describe_stepper(const StageSettings& settings);

// Whether anything can run at all here: the program is there and can be started and traced. An
// empty string, or one clear line, which ends the run with status 3.
std::string check_set_up(const StageSettings& settings);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_RUN_H_
