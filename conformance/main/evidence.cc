// SPDX-License-Identifier: MIT
//
// See evidence.h.
#include "conformance/main/evidence.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "conformance/failure/excerpt.h"
#include "conformance/model/run_record.h"

namespace kmes::conformance {
namespace {

// The end of a text: the last output of a program says most.
std::string last_bytes(const std::string& text, std::size_t most) {
    return text.substr(text.size() - std::min(text.size(), most));
}

bool has_word(std::string_view line) {
    return std::ranges::any_of(
        line, [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; });
}

// Returns the first and the last line with a letter or a digit: a sanitizer begins with a rule. A
// traceback of some languages begins with the error, and that of others ends with it.
std::string first_and_last_line(std::string_view text) {
    constexpr std::size_t kMostBytes = 300;
    std::string_view first;
    std::string_view last;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (!has_word(line)) continue;
        if (first.empty()) first = line;
        last = line;
    }
    std::string lines(first.substr(0, kMostBytes));
    if (last.data() != first.data()) lines.append(" ... ").append(last.substr(0, kMostBytes));
    return lines;
}

bool is_of_an_end(const RunRecord& record) {
    if (record.findings.empty()) return false;
    const FindingCode code = record.findings.front().code;
    return code == FindingCode::crash || code == FindingCode::ended_too_early ||
           code == FindingCode::wrong_exit_status;
}

}  // namespace

void take_evidence(const CaseOutcome& outcome, CaseResult& result) {
    result.findings.clear();
    result.history.clear();
    result.standard_error.clear();
    result.last_words.clear();
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
    if (is_of_an_end(record)) result.last_words = first_and_last_line(record.standard_error);
    result.trace = excerpt(record.timeline);
}

}  // namespace kmes::conformance
