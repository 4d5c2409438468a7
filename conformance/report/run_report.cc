// SPDX-License-Identifier: MIT
//
// The exit status of a run.
#include "conformance/report/run_report.h"

namespace kmes::conformance {

namespace {

int status_of_cases(const RunReport& report) {
    if (!report.preflight.empty()) return report.preflight_status;
    return report.interrupted ? kExitSuite : exit_status(summarise(report.results));
}

}  // namespace

std::string suite_title(const SuiteVersion& suite) {
    return suite.release.empty() ? std::string(kSuiteName) : "kmes-conformance " + suite.release;
}

int exit_status(const RunReport& report) {
    const int status = status_of_cases(report);
    // An error of the suite takes precedence over a difference.
    return report.differences.empty() || status == kExitSuite ? status : kExitFailed;
}

}  // namespace kmes::conformance
