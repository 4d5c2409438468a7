// SPDX-License-Identifier: MIT
//
// The report in the Test Anything Protocol.
#include "conformance/report/tap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "conformance/model/published_clause.h"
#include "conformance/report/result.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

// A description ends at an unescaped '#'.
std::string description(std::string_view text) {
    std::string escaped;
    for (const char c : printable(text)) {
        if (c == '#' || c == '\\') escaped.push_back('\\');
        escaped.push_back(c);
    }
    return escaped;
}

// A JSON string is also a YAML string.
void add_field(std::string& out, std::string_view name, std::string_view value) {
    if (value.empty()) return;
    fmt::format_to(std::back_inserter(out), "  {}: {}\n", name,
                   nlohmann::json(printable(value)).dump());
}

// Adds lines unchanged, as a block with an explicit indentation of two, because the text may begin
// with spaces.
void add_lines(std::string& out, std::string_view name, std::string_view value) {
    if (value.empty()) return;
    const std::string text = printable(value, true);
    fmt::format_to(std::back_inserter(out), "  {}: |2\n", name);
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        if (end > begin)
            fmt::format_to(std::back_inserter(out), "    {}", text.substr(begin, end - begin));
        out.push_back('\n');
        begin = end + 1;
    }
}

void add_comment(std::string& out, std::string_view lines) {
    const std::string text = printable(lines, true);
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        fmt::format_to(std::back_inserter(out), "# {}\n", text.substr(begin, end - begin));
        begin = end + 1;
    }
}

void add_block(std::string& out, const CaseResult& result, std::string_view layout) {
    out += "  ---\n";
    add_field(out, "severity", verdict_name(result.verdict));
    add_field(out, "message", result.message);
    add_field(out, "level", level_name(result.level));
    add_field(out, "clause", result.clause);
    add_field(out, "published", published_place(result.clause, layout));
    add_field(out, "done", result.what_is_done);
    add_field(out, "right", result.what_is_right);
    add_lines(out, "details", result.details);
    add_lines(out, "trace", result.drawing);
    add_field(out, "saved", result.saved);
    add_field(out, "again", result.replay);
    out += "  ...\n";
}

}  // namespace

std::string to_tap(const RunReport& report) {
    std::string out = fmt::format(
        "TAP version 14\n1..{}\n# {}: {}\n# seed {}\n",
        report.results.size() + report.differences.size() + report.not_run.size(),
        suite_title(report.suite), printable(shell_command(report.testee)), report.seed);
    std::size_t number = 0;
    for (const CaseResult& result : report.results) {
        const bool is_skipped = result.verdict == Verdict::unsupported;
        const bool is_ok = is_skipped || result.verdict == Verdict::pass;
        fmt::format_to(std::back_inserter(out), "{} {} - {}", is_ok ? "ok" : "not ok", ++number,
                       description(result.id));
        if (is_skipped)
            fmt::format_to(std::back_inserter(out), " # SKIP {}", printable(result.message));
        // TAP's directive for what is still to be fixed: a harness does not count it as a failure.
        if (result.is_known)
            out +=
                " # TO"
                "DO known failure";
        out.push_back('\n');
        if (!is_ok) add_block(out, result, report.options.layout);
    }
    // A line of a list that does not fit fails the run, although no case does.
    for (const ListDifference& each : report.differences)
        fmt::format_to(std::back_inserter(out), "not ok {} - {}\n", ++number,
                       description(each.message));
    add_comment(out, report.preflight);
    if (!report.not_run.empty())
        fmt::format_to(std::back_inserter(out), "Bail out! {} case{} did not run, from {} on\n",
                       report.not_run.size(), report.not_run.size() == 1 ? "" : "s",
                       description(report.not_run.front()));
    return out;
}

}  // namespace kmes::conformance
