// SPDX-License-Identifier: MIT
//
// Decides which clause a failure is about, from the other failures of the run. Knows no case and no
// way to print.
#ifndef KMES_CONFORMANCE_MAIN_ATTRIBUTION_H_
#define KMES_CONFORMANCE_MAIN_ATTRIBUTION_H_

#include <vector>

#include "conformance/main/failure_groups.h"

namespace kmes::conformance {

// Returns 0 if the case was made for its finding, 1 if for a part of it or for more, and 2 if for
// something else.
int distance(const FailedCase& failed);

// Changes the clauses of failures that other cases of the run explain.
void attribute(std::vector<FailedCase>& failures, const PassedCases& passed);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_ATTRIBUTION_H_
