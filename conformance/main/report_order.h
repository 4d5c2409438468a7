// SPDX-License-Identifier: MIT
//
// The failures of a whole report: their order, and the clause that each of them has by what the
// other ones tell. Knows no process and no way to print.
#ifndef KMES_CONFORMANCE_MAIN_REPORT_ORDER_H_
#define KMES_CONFORMANCE_MAIN_REPORT_ORDER_H_

#include <cstddef>
#include <vector>

#include "conformance/main/telling.h"
#include "conformance/model/case.h"
#include "conformance/report/result.h"
#include "conformance/report/run_report.h"

namespace kmes::conformance {

// `place`: the index of the case among all.
Failed failed_of(const Case& the_case, std::size_t place, const CaseResult& result);

PassedCases passed_cases(const std::vector<Case>& cases, const RunReport& report);

// Sets `telling` of the report, and the clause of each failure to that of its group. `results`: of
// each failure, its index among the results.
void order_failures(const std::vector<FailureGroup>& groups,
                    const std::vector<std::size_t>& results, RunReport& report);

// The same for a report that was read from files. A case that `cases` has not keeps its clause.
void order_failures(const std::vector<Case>& cases, RunReport& report);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_REPORT_ORDER_H_
