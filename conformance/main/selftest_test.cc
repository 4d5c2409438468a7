// SPDX-License-Identifier: MIT
//
// Tests of the commands `selftest` and `clauses`, with made-up runs.
#include "conformance/main/selftest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>

#include "conformance/main/clauses_command.h"

namespace kmes::conformance {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr const char* kTable =
    "# a comment\n"
    "broken\tno-tail-recheck\tc\tE4/torn\ttestees/broken_no-tail-recheck\n"
    "broken\tslow-waker\trust\tE1/late\ttestees/broken_slow-waker\n"
    "broken\tsharer\tc\tE12/two\ttestees/broken_sharer\n"
    "broken\tunseen\tc\t- nothing shows it\ttestees/broken_unseen\n"
    "correct\tpython-one\tpython\t\tpython3\ttestees/correct/python-one.program\n"
    "correct\tstand-in\tgo\t\ttestees/correct/stand-in.program\n";

CaseOutcome never_run(Stage&) {
    throw std::logic_error("not run here");
}

// The command in a folder of its own, with a runner whose answer depends on the program's name.
class Shell {
  public:
    Shell() {
        const char* base = std::getenv("TEST_TMPDIR");
        folder_ = std::string(base != nullptr ? base : "/tmp") + "/selftest_test.XXXXXX";
        EXPECT_NE(::mkdtemp(folder_.data()), nullptr);
        std::filesystem::create_directories(folder_ + "/main");
        std::filesystem::create_directories(folder_ + "/testees/correct");
        for (const char* name : {"broken_no-tail-recheck", "broken_slow-waker", "broken_sharer",
                                 "broken_unseen", "correct/python-one.program"}) {
            write("testees/" + std::string(name), "#!/bin/true\n");
        }
        write("testees/correct/stand-in.program", "#!/bin/sh\nexit 77\n");
        write("main/selftest.table", kTable);
        cases_.push_back({"E12/two", Level::erratum, "t", "d", "e", never_run});
        cases_.back().demand = Demand::shared;
        // Everything is as it should be.
        answers["broken_no-tail-recheck"] = {1, {"E4/torn"}, "", {}};
        answers["broken_slow-waker"] = {1, {"E1/late"}, "", {}};
        answers["broken_sharer"] = {1, {"E12/two"}, "", {}};
        answers["python-one.program"] = {0, {}, "", {}};
    }
    ~Shell() { std::filesystem::remove_all(folder_); }

    void write(const std::string& name, const std::string& text) {
        std::ofstream(folder_ + "/" + name) << text;
    }

    int run(const std::vector<std::string>& arguments) {
        out.str("");
        error.str("");
        calls.clear();
        const Surroundings around{
            .cases = cases_,
            .run_on_stage = nullptr,
            .check_set_up = nullptr,
            .out = out,
            .error = error,
            .timeout_scale = scale,
            .stop = stop,
        };
        const Command command =
            selftest_command(folder_, [this](const std::vector<std::string>& words) {
                const std::string name = std::filesystem::path(words.back()).filename();
                const std::lock_guard<std::mutex> lock(mutex_);
                calls[name] = words;
                return answers.at(name);
            });
        return command.run(arguments, around);
    }

    std::string folder() const { return folder_; }

    std::map<std::string, SelftestRun> answers;
    std::map<std::string, std::vector<std::string>> calls;
    std::ostringstream out;
    std::ostringstream error;
    std::string scale;
    StopFlag stop;

  private:
    std::string folder_;
    std::vector<Case> cases_;
    std::mutex mutex_;
};

TEST(Selftest, CountsByLanguageWhereAllIsAsItShouldBe) {
    Shell shell;
    EXPECT_EQ(shell.run({"--jobs", "2"}), 0);
    EXPECT_EQ(shell.calls.size(), 4u);
    EXPECT_THAT(shell.out.str(), HasSubstr("failed by E4/torn\n"));
    EXPECT_THAT(shell.out.str(), HasSubstr("no case yet - nothing shows it\n"));
    EXPECT_THAT(shell.out.str(), HasSubstr("not built: its compiler is missing\n"));
    EXPECT_THAT(shell.out.str(), HasSubstr("c:       2 of 2 broken ones failed\n"));
    EXPECT_THAT(shell.out.str(), HasSubstr("python:  1 of 1 correct ones pass\n"));
    EXPECT_THAT(shell.out.str(),
                HasSubstr("all:     3 of 3 broken ones failed, 1 of 1 correct ones pass; 2 left "
                          "out\n"));
    EXPECT_EQ(shell.error.str(), "");
}

TEST(Selftest, RunsABrokenOneAgainWhoseCaseWasPlayedInPart) {
    Shell shell;
    shell.answers["broken_slow-waker"] = {0, {}, "", {"E1/late"}};
    EXPECT_EQ(shell.run({"--explore", "off"}), 1);
    EXPECT_THAT(shell.calls["broken_slow-waker"], Contains("4"));
    EXPECT_THAT(shell.out.str(), HasSubstr("NOT failed by E1/late\n"));
}

TEST(Selftest, RunsABrokenOneWithItsCaseAndACorrectOneByDefault) {
    Shell shell;
    EXPECT_EQ(shell.run({"--explore", "off"}), 0);
    EXPECT_THAT(shell.calls["broken_slow-waker"],
                ElementsAre("--filter", "E1/late", "--level", "robust", "--no-preflight",
                            "--timeout-scale", "0.25", "--jobs", "1", "--explore", "off", "--",
                            shell.folder() + "/testees/broken_slow-waker"));
    EXPECT_THAT(shell.calls["broken_sharer"], Contains("--shared"));
    EXPECT_THAT(shell.calls["python-one.program"],
                ElementsAre("--timeout-scale", "1", "--jobs", "1", "--explore", "off", "--",
                            "python3", shell.folder() + "/testees/correct/python-one.program"));
    shell.scale = "4";
    EXPECT_EQ(shell.run({"--filter", "slow*"}), 0);
    EXPECT_THAT(shell.calls["broken_slow-waker"], Contains("1"));
    EXPECT_THAT(shell.calls["broken_slow-waker"], Not(Contains("--explore")));
}

TEST(Selftest, FailsWhereABrokenOnePasses) {
    Shell shell;
    shell.answers["broken_slow-waker"] = {0, {}, "", {}};
    EXPECT_EQ(shell.run({}), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("NOT failed by E1/late\n"));
    EXPECT_THAT(shell.out.str(), HasSubstr("rust:    0 of 1 broken ones failed\n"));
    // Another case than its own failed it: not enough.
    shell.answers["broken_slow-waker"] = {1, {"E2/other"}, "", {}};
    EXPECT_EQ(shell.run({}), 1);
    // An inconclusive case is no failure.
    shell.answers["broken_slow-waker"] = {4, {}, "", {}};
    EXPECT_EQ(shell.run({}), 1);
}

TEST(Selftest, FailsWhereACorrectOneIsBlamed) {
    Shell shell;
    shell.answers["python-one.program"] = {1, {"5.1.5/maps", "E3/x"}, "", {}};
    EXPECT_EQ(shell.run({}), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("FAILED by 5.1.5/maps E3/x\n"));
    shell.answers["python-one.program"] = {4, {}, "", {}};
    EXPECT_EQ(shell.run({}), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("INCONCLUSIVE\n"));
}

TEST(Selftest, SaysWhereTheSuiteFails) {
    Shell shell;
    shell.answers["python-one.program"] = {3, {}, "no report: words of the runner", {}};
    EXPECT_EQ(shell.run({}), 3);
    EXPECT_THAT(shell.out.str(), HasSubstr("no report: words of the runner\n"));
    shell.answers["broken_sharer"] = {2, {}, "", {}};
    shell.answers["python-one.program"] = {0, {}, "", {}};
    EXPECT_EQ(shell.run({}), 3);
}

TEST(Selftest, SaysThatItCannotWriteItsOutput) {
    for (const bool passes : {false, true}) {
        Shell shell;
        if (passes) shell.answers["broken_no-tail-recheck"] = {0, {}, "", {}};
        shell.out.setstate(std::ios::badbit);
        EXPECT_EQ(shell.run({}), 3);
        EXPECT_EQ(shell.error.str(), "kmes-conformance: cannot write to standard output\n");
    }
}

TEST(Selftest, RunsAPartOfThem) {
    Shell shell;
    EXPECT_EQ(shell.run({"--only", "correct"}), 0);
    EXPECT_EQ(shell.calls.size(), 1u);
    EXPECT_EQ(shell.run({"--only", "broken", "--filter", "s*"}), 0);
    EXPECT_EQ(shell.calls.size(), 2u);
    std::size_t all = 0;
    for (int share = 1; share <= 4; ++share) {
        EXPECT_EQ(shell.run({"--share", std::to_string(share) + "/4"}), 0);
        all += shell.calls.size();
    }
    EXPECT_EQ(all, 4u);
}

TEST(Selftest, SaysBadUsageInOneLine) {
    Shell shell;
    struct Usage {
        std::vector<std::string> arguments;
        std::string said;
    };
    const std::vector<Usage> usages = {
        Usage{{"--jobs", "0"}, "--jobs is \"0\"; expected a number from 1 to 64"},
        Usage{{"--only", "both"}, "--only is \"both\"; expected broken or correct"},
        Usage{{"--share", "3/2"}, "--share is \"3/2\"; expected N/M with N from 1 to M"},
        Usage{{"--share", "2"}, "N/M"},
        Usage{{"--share", "7/9"}, "this share has no testee"},
        Usage{{"--explore", "much"}, "--explore is \"much\"; expected off, quick, deep"},
        Usage{{"--timeout-scale", "0"}, "a number from 0.04 to 1000"},
        Usage{{"--filter", "nobody"}, "no testee has this name"},
        Usage{{"--", "./program"}, "this command takes no program"},
        Usage{{"more"}, "more"},
        Usage{{"--what"}, "--what"},
    };
    for (const auto& [arguments, said] : usages) {
        EXPECT_EQ(shell.run(arguments), 2) << said;
        EXPECT_THAT(shell.error.str(), HasSubstr("kmes-conformance: selftest: "));
        EXPECT_THAT(shell.error.str(), HasSubstr(said));
        const std::string words = shell.error.str();
        EXPECT_EQ(std::count(words.begin(), words.end(), '\n'), 1);
        EXPECT_THAT(shell.calls, IsEmpty());
    }
    EXPECT_EQ(shell.run({"--help"}), 0);
    EXPECT_THAT(shell.out.str(), HasSubstr("--share N/M"));
}

TEST(Selftest, WantsATableThatIsOne) {
    Shell shell;
    shell.write("main/selftest.table", "broken\tname\tc\n");
    EXPECT_EQ(shell.run({}), 3);
    EXPECT_THAT(shell.error.str(), HasSubstr("line 1 is "));
    std::filesystem::remove(shell.folder() + "/main/selftest.table");
    EXPECT_EQ(shell.run({}), 3);
    EXPECT_THAT(shell.error.str(), HasSubstr("tools/kmes conformance selftest` builds"));
    EXPECT_THAT(shell.error.str(), Not(HasSubstr(".table;")));
    EXPECT_EQ(parse_selftest_table("").error, "it names no testee");
    EXPECT_NE(parse_selftest_table("correct\tn\tc\tE1/x\tp\n").error, "");
    EXPECT_NE(parse_selftest_table("broken\tn\tc\t\tp\n").error, "");
    EXPECT_EQ(parse_selftest_table(kTable).entries.size(), 6u);
}

TEST(Selftest, EndsWhenInterrupted) {
    Shell shell;
    shell.stop.ask(SIGINT);
    EXPECT_EQ(shell.run({}), 130);
    EXPECT_THAT(shell.error.str(), HasSubstr("interrupted: 0 of 6 testees were run"));
}

TEST(Clauses, PrintsTheTableAndTakesNoProgram) {
    const std::vector<Case> cases;
    const StopFlag stop;
    std::ostringstream out;
    std::ostringstream error;
    const Surroundings around{.cases = cases,
                              .run_on_stage = nullptr,
                              .check_set_up = nullptr,
                              .out = out,
                              .error = error,
                              .timeout_scale = "",
                              .stop = stop};
    const Command command = clauses_command([](std::ostream& to) { to << "the table\n"; });
    EXPECT_EQ(command.run({}, around), 0);
    EXPECT_EQ(out.str(), "the table\n");
    EXPECT_EQ(command.run({"--", "p"}, around), 2);
    EXPECT_EQ(command.run({"5.1"}, around), 2);
    EXPECT_THAT(error.str(), HasSubstr("clauses: this command takes no program"));
}

}  // namespace
}  // namespace kmes::conformance
