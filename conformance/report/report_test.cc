// SPDX-License-Identifier: MIT
//
// Tests of verdicts and of what all reports have in common, and of the JSON report.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "conformance/report/console.h"
#include "conformance/report/html.h"
#include "conformance/report/json.h"
#include "conformance/report/junit.h"
#include "conformance/report/report_testing.h"
#include "conformance/report/result.h"
#include "conformance/report/tap.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Level, HasANameAndBack) {
    for (const Level level : kLevels) {
        EXPECT_EQ(level_from_name(level_name(level)), level);
    }
    EXPECT_EQ(level_from_name("Must"), std::nullopt);
    EXPECT_LT(Level::must, Level::should);
    EXPECT_LT(Level::should, Level::erratum);
    EXPECT_LT(Level::erratum, Level::robust);
}

TEST(ExitStatus, RanksSuiteErrorsFirst) {
    EXPECT_EQ(exit_status(Summary{.pass = 3, .unsupported = 1}), 0);
    EXPECT_EQ(exit_status(Summary{.pass = 3, .fail = 1, .inconclusive = 1}), 1);
    EXPECT_EQ(exit_status(Summary{.pass = 3, .fail = 1, .inconclusive = 1, .suite_error = 1}), 3);
    EXPECT_EQ(exit_status(Summary{.pass = 3, .inconclusive = 1, .unsupported = 1}), 4);
    EXPECT_EQ(exit_status(Summary{}), 0);
    RunReport interrupted = small_report();
    EXPECT_EQ(exit_status(interrupted), 1);
    interrupted.interrupted = true;
    EXPECT_EQ(exit_status(interrupted), 3);
}

TEST(Json, HasTheKeysOfSchemaTwo) {
    const nlohmann::json parsed = nlohmann::json::parse(to_json(small_report()));
    EXPECT_EQ(parsed["schema"], 2);
    EXPECT_EQ(parsed["testee"], nlohmann::json({"./consumer", "--fast"}));
    EXPECT_EQ(parsed["run"]["seed"], 7);
    EXPECT_EQ(parsed["cases"][0], nlohmann::json::parse(R"({
      "id": "5.1.8/drain",
      "level": "must",
      "verdict": "pass",
      "clause": "",
      "message": "",
      "seconds": 0.123,
      "replay": ""
    })"));
    EXPECT_EQ(parsed["cases"][1], nlohmann::json::parse(R"({
      "id": "E21/twice",
      "level": "erratum",
      "verdict": "fail",
      "clause": "E21",
      "message": "CPU 0: event 1 was delivered more than once",
      "seconds": 0.123,
      "replay": "kmes-conformance --filter E21/twice -- ./consumer --fast"
    })"));
    EXPECT_EQ(parsed["summary"], nlohmann::json::parse(R"({
      "pass": 1, "fail": 1, "known": 0, "inconclusive": 0, "unsupported": 0, "suite_error": 0
    })"));
}

TEST(Json, SurvivesAnyByteOfATestee) {
    RunReport report = small_report();
    std::string bytes;
    for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<char>(byte));
    report.testee[1] = bytes;
    report.results[1].message = bytes;
    report.results[1].replay = bytes;
    report.seed = UINT64_MAX;
    const nlohmann::json parsed = nlohmann::json::parse(to_json(report));
    EXPECT_EQ(parsed["run"]["seed"].get<std::uint64_t>(), UINT64_MAX);
    EXPECT_THAT(parsed["cases"][1]["message"].get<std::string>(), HasSubstr("~\x7f\\x80\\x81"));
}

// In another form of the layout than A, a clause is named as in the document of that form, too.
TEST(Reports, NameTheClauseOfThePublishedDocument) {
    RunReport report = small_report();
    report.results[1].clause = "5.1.8.1-5";
    const auto texts_of = [](const RunReport& of) {
        std::ostringstream out;
        ConsoleReport(out, {}).end(of);
        return std::vector<std::string>{out.str(), to_json(of), to_tap(of), to_html(of),
                                        to_junit(of)};
    };
    for (const std::string& text : texts_of(report)) EXPECT_THAT(text, Not(HasSubstr("published")));
    report.options.layout = "D";
    for (const std::string& text : texts_of(report))
        EXPECT_THAT(text, HasSubstr("Consumer Protocol, Draining, step 5"));
    report.options.layout = "B";
    for (const std::string& text : texts_of(report)) EXPECT_THAT(text, HasSubstr("5.1.9.1 step 5"));
}

// Only JSON has nothing for a clause that no document has: programs read a place there.
TEST(Reports, SayThatNoContractIsPublished) {
    RunReport report = small_report();
    report.results[1].clause = "contract-1";
    report.options.layout = "D";
    std::ostringstream out;
    ConsoleReport(out, {}).end(report);
    for (const std::string& text : {out.str(), to_tap(report), to_html(report), to_junit(report)})
        EXPECT_THAT(text, HasSubstr("none; the published documents have no contract for testees"));
    EXPECT_THAT(to_json(report), Not(HasSubstr("published")));
}

TEST(Html, FailsWhereAListDoesNotFitAndSaysWhyNothingRan) {
    RunReport report = small_report();
    report.results.pop_back();
    EXPECT_THAT(to_html(report), HasSubstr("<p class=\"outcome pass\">"));
    report.differences = {{"", "<no case>"}};
    report.preflight = "no event <0>\n";
    const std::string text = to_html(report);
    EXPECT_THAT(text, HasSubstr("<p class=\"outcome fail\">No case of 1 failed, 1 line of a list "
                                "does not fit</p>"));
    EXPECT_THAT(text, HasSubstr("<li>&lt;no case&gt;</li>"));
    EXPECT_THAT(text, HasSubstr("no event &lt;0&gt;"));
}

}  // namespace
}  // namespace kmes::conformance
