// SPDX-License-Identifier: MIT
//
// The list of all cases.
#ifndef KMES_CONFORMANCE_CASES_REGISTRY_H_
#define KMES_CONFORMANCE_CASES_REGISTRY_H_

#include <vector>

#include "conformance/model/case.h"

namespace kmes::conformance {

// Returns every case, in the order in which they run.
const std::vector<Case>& all_cases();

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_CASES_REGISTRY_H_
