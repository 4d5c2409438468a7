// SPDX-License-Identifier: MIT
//
// See evidence.h.
#include "conformance/main/evidence.h"

#include <algorithm>
#include <string>

#include "conformance/failure/excerpt.h"
#include "conformance/model/run_record.h"

namespace kmes::conformance {
namespace {

// The end of a text: the last output of a program says most.
std::string last_bytes(const std::string& text, std::size_t most) {
    return text.substr(text.size() - std::min(text.size(), most));
}

}  // namespace

void take_evidence(const CaseOutcome& outcome, CaseResult& result) {
    result.findings.clear();
    result.history.clear();
    result.standard_error.clear();
    result.trace = Trace{};
    if (!outcome.record) return;
    const RunRecord& record = *outcome.record;
    const std::size_t findings = std::min(record.findings.size(), kFindingsInAReport);
    for (std::size_t i = 0; i < findings; ++i) {
        result.findings.push_back(record.findings[i]);
        std::string& message = result.findings.back().message;
        message.resize(std::min(message.size(), kTextBytesInAReport));
    }
    result.history = last_bytes(record.history_excerpt, kTextBytesInAReport);
    result.standard_error = last_bytes(record.standard_error, kStandardErrorBytesInAReport);
    result.trace = excerpt(record.timeline);
}

}  // namespace kmes::conformance
