// SPDX-License-Identifier: MIT
//
// What a report takes from the record of a failed case: the findings, the history, the standard
// error and the trace, each of them bounded.
#ifndef KMES_CONFORMANCE_MAIN_EVIDENCE_H_
#define KMES_CONFORMANCE_MAIN_EVIDENCE_H_

#include <cstddef>

#include "conformance/model/verdict.h"
#include "conformance/report/result.h"

namespace kmes::conformance {

inline constexpr std::size_t kFindingsInAReport = 100;
inline constexpr std::size_t kStandardErrorBytesInAReport = 8192;

// Replaces the evidence in `result` with that of `outcome`. An outcome without a record has none.
void take_evidence(const CaseOutcome& outcome, CaseResult& result);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_EVIDENCE_H_
