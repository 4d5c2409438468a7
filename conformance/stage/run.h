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

// Makes a fresh stage with a fresh testee, runs the case on it, and destroys it. Every exception of
// the case becomes an outcome: an unknown exception becomes suite_error. nullptr: no monitors.
CaseOutcome run_with_monitors(const Case& the_case, const StageSettings& settings,
                              const MonitorFactory& make_monitors);

// Describes in one line how the suite stops at single accesses of this testee, and why. It starts
// the testee with one CPU for a short time to learn this. If that fails, the line says so, and why.
// `cpus_before`: the number of CPUs of an earlier check that did not fail, or 0.
std::string describe_stepper(const StageSettings& settings, std::uint32_t cpus_before);

// Checks that the program exists and can be started and traced, and that the device can make an
// instance. Returns an empty string, or one line, which ends the run with status 3.
std::string check_set_up(const StageSettings& settings);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_RUN_H_
