// SPDX-License-Identifier: MIT
//
// Everything that a report prints about one run of the suite. Knows no way to print it.
#ifndef KMES_CONFORMANCE_REPORT_RUN_REPORT_H_
#define KMES_CONFORMANCE_REPORT_RUN_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/model/verdict.h"
#include "conformance/report/result.h"

namespace kmes::conformance {

inline constexpr std::string_view kSuiteName = "kmes-conformance 1";

struct RunReport {
    std::vector<std::string> testee;  // program and arguments
    std::uint32_t cpus = 0;
    std::uint64_t capacity_bytes = 0;
    std::uint64_t seed = 0;
    std::string stepper;  // how single accesses are stopped at, and why; empty: not known
    std::vector<CaseResult> results;
    // Of those that failed, the indexes in the order in which a person should read them; empty: as
    // they ran.
    std::vector<std::size_t> telling;
    std::vector<std::string> not_run;  // ids of the cases that the run did not come to
    bool interrupted = false;          // a signal kept the run from these
    double seconds = 0;
};

// The exit status that follows from the cases. An interrupted run has the status of its signal
// instead (StopFlag::status_or); without one it is an error of the suite.
int exit_status(const RunReport& report);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_RUN_REPORT_H_
