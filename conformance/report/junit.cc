// SPDX-License-Identifier: MIT
//
// The report as JUnit XML.
#include "conformance/report/junit.h"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string_view>

#include "conformance/model/published_clause.h"
#include "conformance/report/result.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

// A case of the suite in the terms of JUnit.
struct Element {
    std::string_view name;  // empty: passed
    std::string_view type;
};

// A known failure is skipped: it must neither fail the job nor count as passed.
Element element_of(const CaseResult& result) {
    if (result.is_known) return {"skipped", ""};
    switch (result.verdict) {
        case Verdict::pass:
            return {};
        case Verdict::fail:
            return {"failure", "fail"};
        case Verdict::unsupported:
            return {"skipped", ""};
        case Verdict::inconclusive:
        case Verdict::suite_error:
            break;
    }
    return {"error", verdict_name(result.verdict)};
}

std::string text_of(const CaseResult& result, std::string_view layout) {
    std::string text;
    const auto add = [&text](std::string_view head, std::string_view words) {
        if (!words.empty()) text += fmt::format("{}{}\n", head, words);
    };
    add("published: ", published_place(result.clause, layout));
    add("done: ", result.what_is_done);
    add("right: ", result.what_is_right);
    add("", result.details);
    add("", result.drawing);
    add("saved: ", result.saved);
    add("again: ", result.replay);
    return text;
}

void add_case(std::string& out, const CaseResult& result, std::string_view layout) {
    fmt::format_to(std::back_inserter(out),
                   R"(    <testcase classname="{}{}{}" name="{}" time="{:.3f}")",
                   xml_text(level_name(result.level)), result.clause.empty() ? "" : ".",
                   xml_text(result.clause), xml_text(result.id), result.seconds);
    const Element element = element_of(result);
    if (element.name.empty()) {
        out += "/>\n";
        return;
    }
    fmt::format_to(std::back_inserter(out), ">\n      <{} message=\"{}\"", element.name,
                   (result.is_known ? "known failure: " : "") + xml_text(result.message));
    if (!element.type.empty())
        fmt::format_to(std::back_inserter(out), " type=\"{}\"", element.type);
    fmt::format_to(std::back_inserter(out), ">{}</{}>\n    </testcase>\n",
                   xml_text(text_of(result, layout), true), element.name);
}

// A line of a list that does not fit fails the run, although no case does.
void add_difference(std::string& out, const ListDifference& difference) {
    fmt::format_to(std::back_inserter(out),
                   "    <testcase classname=\"list\" name=\"{}\" time=\"0.000\">\n"
                   "      <failure message=\"{}\" type=\"list\"></failure>\n"
                   "    </testcase>\n",
                   xml_text(difference.case_id.empty() ? "no case" : difference.case_id),
                   xml_text(difference.message));
}

}  // namespace

std::string to_junit(const RunReport& report) {
    const Summary summary = summarise(report.results);
    const std::uint64_t not_run = report.not_run.size();
    const std::uint64_t differences = report.differences.size();
    const std::string counts = fmt::format(
        R"(tests="{}" failures="{}" errors="{}" skipped="{}" time="{:.3f}")",
        report.results.size() + not_run + differences, summary.fail - summary.known + differences,
        summary.inconclusive + summary.suite_error + not_run, summary.unsupported + summary.known,
        report.seconds);
    std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    fmt::format_to(std::back_inserter(out), "<testsuites {}>\n  <testsuite name=\"{}\" {}>\n",
                   counts, kSuiteName, counts);
    fmt::format_to(std::back_inserter(out),
                   "    <properties>\n"
                   "      <property name=\"testee\" value=\"{}\"/>\n"
                   "      <property name=\"seed\" value=\"{}\"/>\n"
                   "    </properties>\n",
                   xml_text(shell_command(report.testee)), report.seed);
    for (const CaseResult& result : report.results) add_case(out, result, report.options.layout);
    for (const ListDifference& each : report.differences) add_difference(out, each);
    for (const std::string& id : report.not_run) {
        fmt::format_to(std::back_inserter(out),
                       "    <testcase name=\"{}\">\n"
                       "      <error message=\"the run ended before this case\" "
                       "type=\"not run\"></error>\n"
                       "    </testcase>\n",
                       xml_text(id));
    }
    if (!report.preflight.empty())
        fmt::format_to(std::back_inserter(out), "    <system-err>{}</system-err>\n",
                       xml_text(report.preflight, true));
    out += "  </testsuite>\n</testsuites>\n";
    return out;
}

}  // namespace kmes::conformance
