// SPDX-License-Identifier: MIT
//
// See evidence.h.
#include "conformance/main/evidence.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "conformance/failure/excerpt.h"
#include "conformance/model/run_record.h"

namespace kmes::conformance {
namespace {

// The end of a text: the last output of a program says most.
std::string last_bytes(const std::string& text, std::size_t most) {
    return text.substr(text.size() - std::min(text.size(), most));
}

// The first line with a letter or a digit: a sanitizer begins with a rule.
std::string first_line(const std::string& text) {
    constexpr std::size_t kMostBytes = 300;
    const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
    const auto word = std::find_if(text.begin(), text.end(), is_word);
    if (word == text.end()) return "";
    const auto at = static_cast<std::size_t>(word - text.begin());
    const std::size_t before = text.rfind('\n', at);
    const std::size_t begin = before == text.npos ? 0 : before + 1;
    const std::size_t end = std::min(text.find('\n', at), text.size());
    return text.substr(begin, std::min(end - begin, kMostBytes));
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
    if (is_of_an_end(record)) result.last_words = first_line(record.standard_error);
    result.trace = excerpt(record.timeline);
}

}  // namespace kmes::conformance
