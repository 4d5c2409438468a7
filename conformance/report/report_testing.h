// SPDX-License-Identifier: MIT
//
// For tests of the reports: a run with a passed case and a failed case.
#ifndef KMES_CONFORMANCE_REPORT_REPORT_TESTING_H_
#define KMES_CONFORMANCE_REPORT_REPORT_TESTING_H_

#include <string>
#include <utility>

#include "conformance/report/result.h"
#include "conformance/report/run_report.h"

namespace kmes::conformance {

inline CaseResult result_of(std::string id, Verdict verdict) {
    CaseResult result;
    result.id = std::move(id);
    result.verdict = verdict;
    result.seconds = 0.12345;
    return result;
}

inline RunReport small_report() {
    RunReport report;
    report.testee = {"./consumer", "--fast"};
    report.cpus = 4;
    report.capacity_bytes = 65536;
    report.seed = 7;
    report.seconds = 1.25;
    report.results.push_back(result_of("5.1.8/drain", Verdict::pass));
    report.results.push_back(result_of("E21/twice", Verdict::fail));
    report.results[1].level = Level::erratum;
    report.results[1].clause = "E21";
    report.results[1].message = "CPU 0: event 1 was delivered more than once";
    report.results[1].replay = "kmes-conformance --filter E21/twice -- ./consumer --fast";
    report.results[1].details = "stderr:\n  oh no\n";
    return report;
}

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_REPORT_TESTING_H_
