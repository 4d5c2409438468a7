// SPDX-License-Identifier: MIT
//
// See findings.h.
#include "conformance/stage/findings.h"

#include "conformance/oracle/driver_findings.h"

namespace kmes::conformance {

void Findings::blame(std::string_view clause, const std::string& message) {
    Finding finding = contract_finding(message);
    finding.clause = clause;
    blame(std::move(finding));
}

std::optional<Finding> Findings::take_first() {
    if (findings_.empty()) return std::nullopt;
    Finding first = findings_.front();
    findings_.erase(findings_.begin());
    return first;
}

void Findings::note_standstill(bool has_hung) {
    stands_still_ = true;
    has_hung_ = has_hung;
}

}  // namespace kmes::conformance
