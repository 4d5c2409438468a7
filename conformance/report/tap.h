// SPDX-License-Identifier: MIT
//
// The report in the Test Anything Protocol, version 14. Knows no file and no terminal.
#ifndef KMES_CONFORMANCE_REPORT_TAP_H_
#define KMES_CONFORMANCE_REPORT_TAP_H_

#include <string>

#include "conformance/report/run_report.h"

namespace kmes::conformance {

// Returns a test point for each case, in the order of the run. A pass is `ok`, and an unsupported
// case is `ok` with SKIP. Every other case is `not ok`, with a YAML block that says what happened.
// The plan includes cases that did not run, and "Bail out!" says that they are missing.
std::string to_tap(const RunReport& report);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_TAP_H_
