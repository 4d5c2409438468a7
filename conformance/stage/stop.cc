// SPDX-License-Identifier: MIT
//
// See stop.h.
#include "conformance/stage/stop.h"

#include <optional>
#include <utility>

#include "conformance/oracle/driver_findings.h"

namespace kmes::conformance {

void stop_with(Finding finding) {
    throw Stop{Verdict::fail, std::move(finding)};
}

void stop_failed(std::string_view clause, std::string_view message) {
    Finding finding = contract_finding(message);
    finding.clause = clause;
    stop_with(std::move(finding));
}

void stop_inconclusive(std::string message) {
    throw Stop{Verdict::inconclusive, contract_finding(message)};
}

void stop_unsupported(std::string message) {
    throw Stop{Verdict::unsupported, contract_finding(message)};
}

void stop_at_fault(const Monitors& monitors) {
    for (const auto& monitor : monitors) {
        if (std::optional<Finding> finding = monitor->fault()) stop_with(*finding);
    }
}

}  // namespace kmes::conformance
