// SPDX-License-Identifier: MIT
//
// See findings.h.
#include "conformance/stage/findings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

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

void Findings::played_in_part(std::string what) {
    if (std::find(in_part_.begin(), in_part_.end(), what) == in_part_.end())
        in_part_.push_back(std::move(what));
}

std::string Findings::in_part() const {
    constexpr std::size_t kMost = 3;
    std::string text;
    for (std::size_t i = 0; i < in_part_.size() && i < kMost; ++i)
        text += (i == 0 ? "" : "; ") + in_part_[i];
    if (in_part_.size() > kMost) text += fmt::format("; and {} more", in_part_.size() - kMost);
    return text;
}

void Findings::note_standstill(bool has_hung) {
    stands_still_ = true;
    has_hung_ = has_hung;
}

}  // namespace kmes::conformance
