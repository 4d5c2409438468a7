// SPDX-License-Identifier: MIT
//
// The order of the failures in a report, and the clause of each, derived from the other failures.
// Knows no process and no way to print.
#ifndef KMES_CONFORMANCE_MAIN_REPORT_ORDER_H_
#define KMES_CONFORMANCE_MAIN_REPORT_ORDER_H_

#include <cstddef>
#include <vector>

#include "conformance/main/failure_groups.h"
#include "conformance/model/case.h"
#include "conformance/report/result.h"
#include "conformance/report/run_report.h"

namespace kmes::conformance {

// `place`: the index of the case among all cases.
FailedCase failed_of(const Case& the_case, std::size_t place, const CaseResult& result);

PassedCases passed_cases(const std::vector<Case>& cases, const RunReport& report);

// Sets `reading_order` of the report, and gives each failure the clause of its group. `results`:
// for each failure, its index among the results.
void order_failures(const std::vector<FailureGroup>& groups,
                    const std::vector<std::size_t>& results, RunReport& report);

// Orders a report that was read from files. A case that `cases` does not contain keeps its clause.
void order_failures(const std::vector<Case>& cases, RunReport& report);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_REPORT_ORDER_H_
