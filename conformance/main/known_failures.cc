// SPDX-License-Identifier: MIT
//
// See known_failures.h.
#include "conformance/main/known_failures.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "conformance/main/selection.h"
#include "conformance/model/step_texts.h"
#include "conformance/report/input_file.h"
#include "conformance/report/result.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

constexpr std::size_t kMaximumFileBytes = std::size_t{16} << 20;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

bool is_hex_digit(char byte) {
    return is_digit(byte) || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

// The part of a message that is the same in each run: no cause, which needs recorded accesses, and
// no evidence, which depends on addresses and threads.
std::string_view lasting_part(std::string_view message) {
    message = message.substr(0, message.find(kTheCause));
    return message.substr(0, message.find(kEvidence));
}

// The rest of a line after the id. It does not depend on the other cases of the run, or on the form
// of its reports.
std::string rest_of(const CaseResult& result) {
    return fmt::format("[{}] {}", printable(result.listed_clause),
                       printable(lasting_part(result.listed_message)));
}

// Compares without figures. Numbers of a clause are not figures.
bool is_same(std::string_view listed, std::string_view now) {
    const auto clause = [](std::string_view rest) { return rest.substr(0, rest.find("] ")); };
    return clause(listed) == clause(now) &&
           without_numbers(lasting_part(listed)) == without_numbers(lasting_part(now));
}

const CaseResult* find_result(const RunReport& report, std::string_view id) {
    const auto found = std::ranges::find(report.results, id, &CaseResult::id);
    return found == report.results.end() ? nullptr : &*found;
}

}  // namespace

std::string without_numbers(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
        if (!is_digit(text[i])) {
            out.push_back(text[i++]);
            continue;
        }
        const bool is_hex = text.substr(i).starts_with("0x");
        i += is_hex ? 2 : 0;
        while (i < text.size() && (is_hex ? is_hex_digit(text[i]) : is_digit(text[i]))) ++i;
        out.push_back('#');
    }
    return out;
}

std::string KnownFailures::read(const std::vector<Case>& cases, const std::string& path,
                                bool may_be_missing) {
    path_ = path;
    const InputFile file = read_input_file(path, kMaximumFileBytes);
    if (file.is_missing && may_be_missing) return "";
    if (!file.error.empty()) return "--known-failures: " + file.error;
    std::set<std::string> ids;
    std::string_view text = file.text;
    if (text.starts_with(kByteOrderMark)) {
        beginning_ = kByteOrderMark;
        text.remove_prefix(kByteOrderMark.size());
    }
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string line(text.substr(0, end));
        const bool ends_with_cr = line.ends_with('\r');
        if (ends_with_cr) line.pop_back();
        line_end_ = ends_with_cr ? "\r\n" : "\n";
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.empty() || line.front() == '#') {
            lines_.push_back({"", line, line_end_});
            continue;
        }
        const std::size_t space = line.find(' ');
        const std::string rest = space == std::string::npos ? "" : line.substr(space + 1);
        if (!rest.starts_with('[') || rest.find("] ") == std::string::npos)
            return fmt::format(
                "{}:{}: expected a case id, the clause in brackets and the message, not \"{}\"",
                printable(path), number, printable(line.substr(0, 80)));
        std::string id = line.substr(0, space);
        if (const Case* const known = find_case(cases, id)) id = known->id;
        lines_.push_back({id, rest, line_end_});
        if (!ids.insert(lines_.back().id).second)
            return fmt::format("{}:{}: the case \"{}\" is listed twice", printable(path), number,
                               printable(lines_.back().id));
    }
    return "";
}

const KnownFailures::Line* KnownFailures::find(std::string_view id) const {
    const auto found = std::ranges::find(lines_, id, &Line::id);
    return found == lines_.end() ? nullptr : &*found;
}

std::vector<ListDifference> KnownFailures::compare(const std::vector<Case>& cases,
                                                   RunReport& report) const {
    std::vector<ListDifference> differences;
    for (CaseResult& result : report.results) {
        const Line* line = find(result.id);
        if (line == nullptr) continue;
        if (result.verdict == Verdict::pass) {
            differences.push_back(
                {result.id, fmt::format("{} passed, but {} lists it as a known failure",
                                        printable(result.id), printable(path_))});
        } else if (result.verdict == Verdict::fail && !is_same(line->rest, rest_of(result))) {
            differences.push_back(
                {result.id,
                 fmt::format("{} failed with another message than {} lists: {}; listed: {}",
                             printable(result.id), printable(path_), rest_of(result),
                             printable(line->rest))});
        } else if (result.verdict == Verdict::fail) {
            result.is_known = true;
        }
    }
    for (const Line& line : lines_) {
        if (!line.id.empty() && find_case(cases, line.id) == nullptr)
            differences.push_back({"", fmt::format("{} lists \"{}\", but there is no such case",
                                                   printable(path_), printable(line.id))});
    }
    return differences;
}

std::string KnownFailures::updated_text(const std::vector<Case>& cases,
                                        const RunReport& report) const {
    std::string text = beginning_;
    for (const Line& line : lines_) {
        if (line.id.empty()) {
            text += line.rest + line.end;
            continue;
        }
        if (find_case(cases, line.id) == nullptr) continue;
        const CaseResult* result = find_result(report, line.id);
        if (result != nullptr && result->verdict == Verdict::pass) continue;
        const bool has_failed = result != nullptr && result->verdict == Verdict::fail;
        // Different figures alone do not change the file.
        const bool is_new = has_failed && !is_same(line.rest, rest_of(*result));
        text += line.id + " " + (is_new ? rest_of(*result) : line.rest) + line.end;
    }
    for (const CaseResult& result : report.results) {
        if (result.verdict == Verdict::fail && find(result.id) == nullptr)
            text += result.id + " " + rest_of(result) + line_end_;
    }
    return text;
}

}  // namespace kmes::conformance
