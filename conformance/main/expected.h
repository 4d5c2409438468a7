// SPDX-License-Identifier: MIT
//
// Cases that are known to be unsupported on a machine (--expect-unsupported): a list that fails the
// run when it is stale.
#ifndef KMES_CONFORMANCE_MAIN_EXPECTED_H_
#define KMES_CONFORMANCE_MAIN_EXPECTED_H_

#include <set>
#include <string>
#include <vector>

#include "conformance/model/case.h"
#include "conformance/report/run_report.h"

namespace kmes::conformance {

struct CaseList {
    std::set<std::string> ids;
    std::string error;  // one line; if not empty, the list is invalid
};

// Reads a list with one case id a line. After a space a line can have a reason for people. Lines
// that begin with '#' and empty lines are ignored. A line may end with CR LF. Every id must be one
// of `cases`.
CaseList read_case_list(const std::string& path, const std::vector<Case>& cases);

// Returns one line for each difference of the run from the list: an unsupported case that is not
// listed, or a listed case that was not unsupported. A case that did not run is no difference.
std::vector<ListDifference> differences(const RunReport& report,
                                        const std::set<std::string>& listed);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_EXPECTED_H_
