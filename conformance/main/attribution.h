// SPDX-License-Identifier: MIT
//
// What a failure is a failure of, as the other failures of the run tell. Knows no case and no way
// to print.
#ifndef KMES_CONFORMANCE_MAIN_ATTRIBUTION_H_
#define KMES_CONFORMANCE_MAIN_ATTRIBUTION_H_

#include <vector>

#include "conformance/main/telling.h"

namespace kmes::conformance {

// 0: the case was made for what it found; 1: for a part of it, or for more; 2: for something else.
int distance(const Failed& failed);

// Changes the clauses of failures that the other cases of the run explain.
void attribute(std::vector<Failed>& failures, const PassedCases& passed);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_ATTRIBUTION_H_
