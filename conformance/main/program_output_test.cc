// SPDX-License-Identifier: MIT
//
// Tests of what a run prints and writes: the console report, the other reports, and the command
// that repeats a failure.
#include "conformance/main/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ios>
#include <nlohmann/json.hpp>
#include <string>

#include "conformance/main/shell.h"

namespace kmes::conformance {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST(Program, RunsASharedCaseAgainTheSameWay) {
    Shell shell;
    shell.cases[0].demand = Demand::shared;
    shell.fail_case("5.1.5/maps");
    EXPECT_EQ(shell.test({"--shared", "--stepper", "guards"}), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("--seed 1 --shared --stepper guards -- ./consumer"));
    shell.cases[0].demand = Demand::explored;
    EXPECT_EQ(shell.test({"--explore", "deep"}), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("--seed 1 --explore deep -- ./consumer"));
    EXPECT_EQ(shell.test({"--explore", "7.5"}), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("--seed 1 --explore 7.5 -- ./consumer"));
    shell.cases[0].demand = Demand::soak;
    EXPECT_EQ(shell.test({"--soak", "7"}), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("--seed 1 --soak 7 -- ./consumer"));
    shell.cases[0].demand = Demand::stream;
    EXPECT_EQ(shell.test({"--stream", "my events"}), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("--seed 1 --stream 'my events' -- ./consumer"));
}

TEST(Program, SaysWhereThereWasNothingToExplore) {
    Shell shell;
    shell.act = [](const Case&) {
        CaseOutcome outcome{Verdict::pass, "", "one thread", ""};
        outcome.explored = Explored{0, 0.0, true};
        return outcome;
    };
    EXPECT_EQ(shell.test(), 0);
    EXPECT_THAT(shell.out.str(), HasSubstr("  nothing to explore: one thread\n"));
    EXPECT_EQ(shell.test({"-v"}), 0);
    EXPECT_THAT(shell.out.str(), HasSubstr("0.00  nothing to explore: one thread\n"));
}

TEST(Program, SaysHowItStepsAndHowMuchItExplored) {
    Shell shell;
    shell.act = [](const Case& the_case) {
        CaseOutcome outcome{Verdict::pass, "", "", ""};
        if (the_case.id == "E21/twice") outcome.explored = Explored{1840, 12.4, false};
        if (the_case.id == "5.1.5/maps") outcome.explored = Explored{1, 0.2, true};
        return outcome;
    };
    EXPECT_EQ(shell.test(), 0);
    EXPECT_THAT(shell.out.str(), HasSubstr("\nstepper: guards: they work\n"));
    EXPECT_THAT(shell.out.str(), HasSubstr("\nexplored: 1841 schedules in 12.6 s\n"));
    EXPECT_EQ(shell.test({"-v"}), 0);
    EXPECT_THAT(shell.out.str(), HasSubstr("  1840 schedules in 12.4 s\n"));
    EXPECT_THAT(shell.out.str(), HasSubstr("  1 schedule in 0.2 s, every single move\n"));
    EXPECT_EQ(shell.test({"--report", "json"}), 0);
    const nlohmann::json parsed = nlohmann::json::parse(shell.out.str());
    EXPECT_EQ(parsed["run"]["stepper"], "guards: they work");
    EXPECT_EQ(parsed["cases"][2]["explored"]["schedules"], 1840);
    EXPECT_EQ(parsed["cases"][2]["explored"]["seconds"], 12.4);
    EXPECT_EQ(parsed["cases"][2]["explored"]["whole"], false);
    EXPECT_FALSE(parsed["cases"][1].contains("explored"));
}

TEST(Program, ReportsAFailureWithTheWayToRunItAgain) {
    Shell shell;
    shell.fail_case("E21/twice");
    EXPECT_EQ(shell.test(), 1);
    EXPECT_THAT(shell.out.str(),
                HasSubstr("\nfail E21/twice (clause E21)\n    it is \\xff wrong\n"
                          "    what is done: what is done\n    what is right: what is right\n"
                          "    | more\n"
                          "    run again: tools/kmes conformance --filter E21/twice --cpus 4 "
                          "--capacity 65536 --seed 1 -- ./consumer 'an argument'\n"));
    EXPECT_THAT(shell.out.str(), HasSubstr("3 cases: 2 pass, 1 fail; "));
}

TEST(Program, RunsAReplayTheSameWay) {
    Shell shell;
    shell.fail_case("E7/torn-size");
    EXPECT_EQ(shell.test({"--level", "robust", "--timeout-scale", "2.5"}), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("--filter E7/torn-size --level robust --cpus 4 "
                                           "--capacity 65536 --seed 1 --timeout-scale 2.5 -- "));
}

TEST(Program, PrintsOnlyJsonOnStandardOutput) {
    Shell shell;
    shell.fail_case("5.1.5/maps");
    EXPECT_EQ(shell.test({"--report", "json", "--seed", "5"}), 1);
    const nlohmann::json parsed = nlohmann::json::parse(shell.out.str());
    EXPECT_EQ(parsed["schema"], 2);
    EXPECT_EQ(parsed["run"]["seed"], 5);
    EXPECT_THAT(std::string(parsed["run"]["began"]), EndsWith("Z"));
    EXPECT_EQ(parsed["suite"]["cases"]["must"], 1);
    EXPECT_EQ(parsed["testee"][1], "an argument");
    EXPECT_EQ(parsed["cases"].size(), 3u);
    EXPECT_EQ(parsed["cases"][0]["verdict"], "fail");
    EXPECT_EQ(parsed["cases"][0]["clause"], "5.1.5");
    EXPECT_EQ(parsed["summary"]["pass"], 2);
    EXPECT_EQ(shell.error.str(), "");
}

TEST(Program, WritesTheReportFileAndPrintsTheConsoleReport) {
    const Folder folder;
    Shell shell;
    EXPECT_EQ(shell.test({"--report", "json", "--report-file", folder.file("r.json")}), 0);
    EXPECT_THAT(shell.out.str(), HasSubstr("3 cases: 3 pass, 0 fail"));
    EXPECT_EQ(nlohmann::json::parse(read_file(folder.file("r.json")))["cases"].size(), 3u);
    EXPECT_EQ(shell.test({"--report-file", folder.file("r.txt")}), 0);
    EXPECT_EQ(read_file(folder.file("r.txt")), shell.out.str());
}

TEST(Program, WritesSeveralReportsOfOneRun) {
    const Folder folder;
    Shell shell;
    shell.fail_case("5.1.5/maps");
    EXPECT_EQ(shell.test({"--report", "json:" + folder.file("r.json"), "--report",
                          "html:" + folder.file("r.html"), "--report",
                          "junit:" + folder.file("r.xml"), "--report", "tap"}),
              1);
    EXPECT_EQ(shell.ran.size(), 3u);
    EXPECT_THAT(shell.out.str(), StartsWith("TAP version 14\n"));
    EXPECT_EQ(nlohmann::json::parse(read_file(folder.file("r.json")))["cases"].size(), 3u);
    EXPECT_THAT(read_file(folder.file("r.html")), HasSubstr("1 of 3 cases failed"));
    EXPECT_THAT(read_file(folder.file("r.xml")), HasSubstr("failures=\"1\""));
    // A console report is printed if no other report uses standard output.
    EXPECT_EQ(shell.test({"--report", "json:" + folder.file("r.json")}), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("3 cases: 2 pass, 1 fail"));
}

TEST(Program, ChecksTheReportFileBeforeTheRun) {
    Shell shell;
    EXPECT_EQ(shell.test({"--report", "html:/no/such/folder/r.html"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("of the html report is not there"));
    EXPECT_EQ(shell.test({"--report-file", "/no/such/folder/r.json"}), 2);
    EXPECT_EQ(shell.test({"--report-file", "/proc/r.json"}), 3);
    EXPECT_THAT(shell.error.str(), HasSubstr("cannot write the report file"));
    EXPECT_THAT(shell.ran, IsEmpty());
}

TEST(Program, PrintsOnlyWhatDidNotPassWhereThatIsAsked) {
    Shell shell;
    EXPECT_EQ(shell.test({"--quiet"}), 0);
    EXPECT_THAT(shell.out.str(), testing::StartsWith("\n3 cases: 3 pass, 0 fail; "));
    shell.fail_case("E21/twice");
    EXPECT_EQ(shell.test({"--quiet"}), 1);
    EXPECT_THAT(shell.out.str(), testing::StartsWith("\nfail E21/twice (clause E21)\n"));
    EXPECT_EQ(shell.test({"--quiet", "-v"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("--quiet excludes -v"));
}

TEST(Program, ShowsProgressOnATerminalOnly) {
    Shell shell;
    EXPECT_EQ(shell.test(), 0);
    EXPECT_EQ(shell.error.str(), "");
    shell.terminal = true;
    EXPECT_EQ(shell.test(), 0);
    EXPECT_THAT(shell.error.str(), HasSubstr("[2/3] 5.1.8.3/checks"));
    EXPECT_THAT(shell.out.str(), Not(HasSubstr("[2/3]")));
}

TEST(Program, SaysWhenItsOutputIsLost) {
    Shell shell;
    shell.out.setstate(std::ios::badbit);
    EXPECT_EQ(shell.test(), 3);
    EXPECT_THAT(shell.error.str(), HasSubstr("cannot write the report to standard output"));
}

}  // namespace
}  // namespace kmes::conformance
