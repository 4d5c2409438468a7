// SPDX-License-Identifier: MIT
//
// Cases that are known to be unsupported where a run is made (--expect-unsupported): a list that
// fails when it is stale.
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
    std::string error;  // one line; not empty: the list is none
};

// A case id in each line; what follows a space is the reason, for people. Lines that begin with '#'
// and empty ones say nothing. Every id must be one of `cases`.
CaseList read_case_list(const std::string& path, const std::vector<Case>& cases);

// Where the run differs from the list, a line each: an unsupported case that is not listed, and a
// listed case that was not unsupported. A case that did not run is no difference.
std::vector<std::string> differences(const RunReport& report, const std::set<std::string>& listed);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_EXPECTED_H_
