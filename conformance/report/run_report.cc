// SPDX-License-Identifier: MIT
//
// The exit status of a run.
#include "conformance/report/run_report.h"

namespace kmes::conformance {

int exit_status(const RunReport& report) {
    if (!report.preflight.empty()) return report.preflight_status;
    return report.interrupted ? kExitSuite : exit_status(summarise(report.results));
}

}  // namespace kmes::conformance
