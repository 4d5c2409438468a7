// SPDX-License-Identifier: MIT
//
// The reports for other programs, JUnit XML and TAP: their content, and that no output of a testee
// breaks them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "conformance/report/junit.h"
#include "conformance/report/run_report.h"
#include "conformance/report/tap.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;

CaseResult result_of(std::string id, Verdict verdict, std::string message = "") {
    CaseResult result;
    result.id = std::move(id);
    result.verdict = verdict;
    result.clause = "E21";
    result.message = std::move(message);
    result.seconds = 0.5;
    return result;
}

RunReport report_of(std::vector<CaseResult> results) {
    RunReport report;
    report.testee = {"./consumer", "two words"};
    report.seed = 7;
    report.seconds = 1.25;
    report.results = std::move(results);
    return report;
}

CaseResult failure() {
    CaseResult result = result_of("E21/twice", Verdict::fail, "event 1 < event 2");
    result.level = Level::erratum;
    result.what_is_done = "Emit.";
    result.what_is_right = "Deliver.";
    result.details = "stderr:\n  oh no\n";
    result.drawing = "  1 | read\n\n  2 | sleep\n";
    result.replay = "kmes-conformance --filter E21/twice -- ./consumer";
    return result;
}

std::string every_byte() {
    std::string bytes = "]]>\xef\xbf\xbe\xef\xbf\xbf\xed\xa0\x80-->";
    for (int byte = 0; byte < 256; ++byte) bytes.push_back(static_cast<char>(byte));
    return bytes;
}

// A report with everything that a testee can have written.
RunReport hostile_report() {
    CaseResult result = failure();
    result.message = result.details = result.drawing = result.replay = result.saved = every_byte();
    RunReport report = report_of({result, result_of("a/b", Verdict::unsupported, every_byte())});
    report.testee = {every_byte()};
    return report;
}

TEST(Junit, HasACaseForEachResult) {
    EXPECT_EQ(to_junit(report_of({result_of("5.1.8/drain", Verdict::pass), failure()})),
              R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="2" failures="1" errors="0" skipped="0" time="1.250">
  <testsuite name="kmes-conformance 1" tests="2" failures="1" errors="0" skipped="0" time="1.250">
    <properties>
      <property name="testee" value="./consumer 'two words'"/>
      <property name="seed" value="7"/>
    </properties>
    <testcase classname="must.E21" name="5.1.8/drain" time="0.500"/>
    <testcase classname="erratum.E21" name="E21/twice" time="0.500">
      <failure message="event 1 &lt; event 2" type="fail">done: Emit.
right: Deliver.
stderr:
  oh no

  1 | read

  2 | sleep

again: kmes-conformance --filter E21/twice -- ./consumer
</failure>
    </testcase>
  </testsuite>
</testsuites>
)");
}

// A server must not take a run with problems for a clean one.
TEST(Junit, CountsWhatIsNeitherPassedNorFailed) {
    RunReport report = report_of({result_of("a/b", Verdict::unsupported, "no device"),
                                  result_of("a/c", Verdict::inconclusive, "too slow"),
                                  result_of("a/d", Verdict::suite_error, "no memory")});
    report.not_run = {"a/e"};
    const std::string xml = to_junit(report);
    EXPECT_THAT(xml, HasSubstr(R"(tests="4" failures="0" errors="3" skipped="1")"));
    EXPECT_THAT(xml, HasSubstr(R"(<skipped message="no device">)"));
    EXPECT_THAT(xml, HasSubstr(R"(<error message="too slow" type="inconclusive">)"));
    EXPECT_THAT(xml, HasSubstr(R"(<error message="no memory" type="suite_error">)"));
    EXPECT_THAT(xml, HasSubstr("<testcase name=\"a/e\">\n      <error "
                               "message=\"the run ended before this case\" type=\"not run\">"));
}

TEST(Junit, NamesNoClauseWhereThereIsNone) {
    RunReport report = report_of({result_of("a/d", Verdict::suite_error, "no memory")});
    report.results[0].clause.clear();
    EXPECT_THAT(to_junit(report), HasSubstr("classname=\"must\" name=\"a/d\""));
}

// Without these, a run with status 1 or 3 would look clean.
TEST(Junit, FailsWhereAListDoesNotFitAndSaysWhyNothingRan) {
    RunReport report = report_of({result_of("a/b", Verdict::pass)});
    report.differences = {{"a/b", "a/b passed, but known lists it"}, {"", "no case of that name"}};
    report.preflight = "  CPU 0 is < mapped\n";
    const std::string xml = to_junit(report);
    EXPECT_THAT(xml, HasSubstr(R"(tests="3" failures="2" errors="0" skipped="0")"));
    EXPECT_THAT(xml, HasSubstr("<testcase classname=\"list\" name=\"a/b\" time=\"0.000\">\n"
                               "      <failure message=\"a/b passed, but known lists it\" "
                               "type=\"list\"></failure>\n"));
    EXPECT_THAT(xml, HasSubstr("name=\"no case\""));
    EXPECT_THAT(xml, HasSubstr("    <system-err>  CPU 0 is &lt; mapped\n</system-err>\n"));
}

TEST(Junit, IsWellFormedWhateverATesteeWrites) {
    const std::string path = std::string(std::getenv("TEST_TMPDIR")) + "/junit.xml";
    std::ofstream(path) << to_junit(hostile_report());
    EXPECT_EQ(std::system(fmt::format("python3 -B -c 'import sys, xml.etree.ElementTree as tree\n"
                                      "cases = tree.parse(sys.argv[1]).findall(\".//testcase\")\n"
                                      "sys.exit(len(cases) != 2)' '{}'",
                                      path)
                              .c_str()),
              0);
}

TEST(Tap, HasAPointForEachResult) {
    RunReport report = report_of({result_of("5.1.8/drain", Verdict::pass), failure(),
                                  result_of("a/b", Verdict::unsupported, "no device")});
    report.not_run = {"a/e", "a/f"};
    EXPECT_EQ(to_tap(report), R"(TAP version 14
1..5
# kmes-conformance 1: ./consumer 'two words'
# seed 7
ok 1 - 5.1.8/drain
not ok 2 - E21/twice
  ---
  severity: "fail"
  message: "event 1 < event 2"
  level: "erratum"
  clause: "E21"
  done: "Emit."
  right: "Deliver."
  details: |2
    stderr:
      oh no
  trace: |2
      1 | read

      2 | sleep
  again: "kmes-conformance --filter E21/twice -- ./consumer"
  ...
ok 3 - a/b # SKIP no device
Bail out! 2 cases did not run, from a/e on
)");
}

TEST(Tap, FailsWhereAListDoesNotFitAndSaysWhyNothingRan) {
    RunReport report = report_of({result_of("a/b", Verdict::pass)});
    report.differences = {{"a/b", "a/b passed, but #known lists it"}};
    report.preflight = "no event\n  CPU 0\n";
    report.not_run = {"a/c"};
    EXPECT_THAT(to_tap(report), HasSubstr("\n1..3\n"));
    EXPECT_THAT(to_tap(report), HasSubstr("ok 1 - a/b\n"
                                          "not ok 2 - a/b passed, but \\#known lists it\n"
                                          "# no event\n"
                                          "#   CPU 0\n"
                                          "Bail out! 1 case did not run"));
}

TEST(Tap, AnInconclusiveCaseIsNotOk) {
    const std::string tap = to_tap(report_of({result_of("a/c", Verdict::inconclusive, "slow")}));
    EXPECT_THAT(tap, HasSubstr("not ok 1 - a/c\n  ---\n  severity: \"inconclusive\"\n"));
}

// No line of a testee begins where TAP reads: each is in a comment, a quoted string or a block.
TEST(Tap, KeepsTheLinesOfATesteeInItsBlock) {
    CaseResult result = failure();
    result.details = "ok 7 - forged\n...\nnot ok 8\n";
    result.message = "\n  ...\nok 9";
    const std::string tap = to_tap(report_of({result}));
    EXPECT_THAT(tap, HasSubstr("  details: |2\n    ok 7 - forged\n    ...\n    not ok 8\n"));
    EXPECT_THAT(tap, HasSubstr("  message: \"\\\\x0a  ...\\\\x0aok 9\"\n"));
    RunReport report = report_of({});
    report.testee = {"a\nok 1"};
    EXPECT_THAT(to_tap(report), HasSubstr("# kmes-conformance 1: $'a\\012ok 1'\n"));
    const std::string hostile = to_tap(hostile_report());
    for (std::size_t at = 0; (at = hostile.find('\n', at)) + 1 < hostile.size(); ++at) {
        const std::string line = hostile.substr(at + 1, 4);
        EXPECT_TRUE(line.starts_with("  ") || line.starts_with("ok 2") || line == "not " ||
                    line.starts_with("1..") || line.starts_with("# "))
            << line;
    }
}

}  // namespace
}  // namespace kmes::conformance
