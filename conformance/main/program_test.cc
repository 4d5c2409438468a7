// SPDX-License-Identifier: MIT
//
// Tests of the whole program, with made-up cases and without a testee: the options that reach the
// stage, the commands, and the exit status.
#include "conformance/main/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "conformance/main/shell.h"

namespace kmes::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Program, PrintsItsVersion) {
    Shell shell;
    EXPECT_EQ(shell.run({"--version"}), 0);
    EXPECT_EQ(shell.out.str(), "kmes-conformance 7\n");
    EXPECT_THAT(shell.ran, ElementsAre());
    EXPECT_EQ(shell.error.str(), "");
}

TEST(Program, HandsTheOptionsToTheStage) {
    Shell shell;
    EXPECT_EQ(shell.test({"--cpus", "2", "--capacity", "131072", "--seed", "9", "--timeout-scale",
                          "3", "-v"}),
              0);
    EXPECT_EQ(shell.last_settings.cpus, 2u);
    EXPECT_EQ(shell.last_settings.capacity_bytes, 131072u);
    EXPECT_EQ(shell.last_settings.seed, 9u);
    EXPECT_EQ(shell.last_settings.timeout_scale, 3.0);
    EXPECT_TRUE(shell.last_settings.verbose);
    EXPECT_EQ(shell.last_settings.stop, &shell.stop);
    EXPECT_THAT(shell.last_settings.testee, ElementsAre("./consumer", "an argument"));
}

TEST(Program, HandsWhatGoesDeeperToTheStage) {
    Shell shell;
    EXPECT_EQ(shell.test({"--explore", "90", "--stepper", "guards", "--shared", "--soak", "2",
                          "--stream", "events"}),
              0);
    EXPECT_EQ(shell.last_settings.explore.seconds, 90);
    EXPECT_EQ(shell.last_settings.stepper, Stepper::guards);
    EXPECT_TRUE(shell.last_settings.shared);
    EXPECT_EQ(shell.last_settings.soak_seconds, 2);
    EXPECT_EQ(shell.last_settings.stream, "events");
    EXPECT_FALSE(shell.last_settings.debug);
    EXPECT_EQ(shell.test({"--explore", "off"}), 0);
    EXPECT_FALSE(shell.last_settings.explore.on);
}

TEST(Program, HandsTheDeviceToTheStageAndToTheNextRun) {
    Shell shell;
    EXPECT_EQ(shell.test(), 0);
    EXPECT_EQ(shell.last_settings.device, "");
    shell.fail_case("5.1.5/maps");
    EXPECT_EQ(shell.test({"--device", "/dev/kmes"}), 1);
    EXPECT_EQ(shell.last_settings.device, "/dev/kmes");
    EXPECT_THAT(shell.out.str(), HasSubstr("--device /dev/kmes"));
}

TEST(Program, TakesACommandAsItsFirstWord) {
    Shell shell;
    EXPECT_EQ(shell.run({"smoke", "-v", "--", "p"}), 42);
    EXPECT_THAT(shell.ran, ElementsAre("-v", "--", "p"));
    EXPECT_EQ(shell.run({"smok", "--", "p"}), 2);
    EXPECT_EQ(shell.error.str(),
              "kmes-conformance: there is no command \"smok\"; the commands are smoke; the program "
              "to test follows after -- (--help lists the options); did you mean smoke?\n");
    EXPECT_EQ(shell.run({"--help"}), 0);
    EXPECT_THAT(shell.out.str(), HasSubstr("Commands, as the first word: smoke"));
}

TEST(Program, HasAStatusForEveryVerdict) {
    Shell shell;
    shell.fail_case("E21/twice", Verdict::inconclusive);
    EXPECT_EQ(shell.test(), 4);
    shell.fail_case("E21/twice", Verdict::unsupported);
    EXPECT_EQ(shell.test(), 0);
    shell.fail_case("E21/twice", Verdict::suite_error);
    EXPECT_EQ(shell.test(), 3);
    shell.act = [](const Case&) -> CaseOutcome { throw std::runtime_error("oh no"); };
    EXPECT_EQ(shell.test(), 3);
    EXPECT_THAT(shell.out.str(), HasSubstr("the case ended with an exception: oh no"));
    EXPECT_EQ(shell.ran.size(), 3u);  // the run went on
}

TEST(Program, EndsAtTheFirstFailureWhenAsked) {
    Shell shell;
    shell.fail_case("5.1.8.3/checks");
    EXPECT_EQ(shell.test({"--fail-fast"}), 1);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.5/maps", "5.1.8.3/checks"));
    EXPECT_THAT(shell.out.str(), HasSubstr("1 case was not run (--fail-fast):\n    E21/twice\n"));
    shell.fail_case("5.1.8.3/checks", Verdict::inconclusive);
    EXPECT_EQ(shell.test({"--fail-fast"}), 4);
    EXPECT_EQ(shell.ran.size(), 3u);
}

TEST(Program, OneThatHangsAgainAndAgainIsGivenLessTime) {
    Shell shell;
    shell.cases.clear();
    for (const char* id : {"1/a", "1/b", "1/c", "1/d", "1/e", "1/f", "1/g"})
        shell.cases.push_back(case_of(id, Level::must));
    bool hangs = true;
    std::vector<double> patience;
    shell.act = [&](const Case&) {
        patience.push_back(shell.last_settings.patience);
        CaseOutcome outcome{Verdict::fail, "", "", ""};
        outcome.has_hung = hangs;
        return outcome;
    };
    EXPECT_EQ(shell.test(), 1);
    EXPECT_THAT(patience, ElementsAre(1.0, 0.25, 1.0 / 16, 1.0 / 64, 1.0 / 64, 1.0 / 64, 1.0 / 64));
    patience.clear();
    hangs = false;
    EXPECT_EQ(shell.test(), 1);
    EXPECT_THAT(patience, testing::Each(1.0));
}

TEST(Program, SaysBadUsageInOneLine) {
    Shell shell;
    EXPECT_EQ(shell.test({"--cpus", "99"}), 2);
    EXPECT_EQ(shell.error.str(),
              "kmes-conformance: --cpus is \"99\"; expected a number from 1 to 64 (--help lists "
              "the options)\n");
    EXPECT_EQ(shell.out.str(), "");
    EXPECT_EQ(shell.run({}), 2);
}

TEST(Program, SaysWhatAWordThatIsNoCommandCanMean) {
    const std::pair<const char*, const char*> words[] = {
        {"list", "\"list\" is no command: --list prints the cases"},
        {"explain", "--explain CASE says"},
        {"help", "--help lists the options"},
        {"run", "[OPTIONS...] -- PROGRAM ARGS..."},
        {"E21/twice", "--filter E21/twice runs it"},
        {"E21", "E21 is a clause, and no case; its cases: E21/twice"},
        {"xyzzy", "there is no command \"xyzzy\"; the commands are smoke"}};
    for (const auto& [word, said] : words) {
        Shell shell;
        EXPECT_EQ(shell.run({word}), 2);
        EXPECT_THAT(shell.error.str(), HasSubstr(said));
    }
}

TEST(Program, EndsWhereNothingCanRun) {
    Shell shell;
    shell.set_up_problem = "ptrace is not permitted";
    EXPECT_EQ(shell.test(), 3);
    EXPECT_EQ(shell.error.str(), "kmes-conformance: ptrace is not permitted\n");
    EXPECT_THAT(shell.ran, IsEmpty());
}

}  // namespace
}  // namespace kmes::conformance
