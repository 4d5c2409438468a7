// SPDX-License-Identifier: MIT
//
// Tests of the whole program, with made-up cases and without a testee.
#include "conformance/main/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>

#include "conformance/main/selection.h"
#include "conformance/model/run_record.h"

namespace kmes::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

CaseOutcome never_run(Stage&) {
    throw std::logic_error("the test runs cases itself");
}

Case case_of(std::string_view id, Level level) {
    return {id,       level, id.substr(0, id.find('/')), "a title", "what is done", "what is right",
            never_run};
}

std::vector<Case> few_cases() {
    return {case_of("5.1.5/maps", Level::must), case_of("5.1.8.3/checks", Level::should),
            case_of("E21/twice", Level::erratum), case_of("E7/torn-size", Level::robust)};
}

// A folder of the test's own.
class Folder {
  public:
    Folder() {
        const char* base = std::getenv("TEST_TMPDIR");
        path_ = std::string(base != nullptr ? base : "/tmp") + "/program_test.XXXXXX";
        EXPECT_NE(::mkdtemp(path_.data()), nullptr);
    }
    ~Folder() { std::filesystem::remove_all(path_); }
    std::string file(const std::string& name) const { return path_ + "/" + name; }
    bool empty() const { return std::filesystem::is_empty(path_); }

  private:
    std::string path_;
};

std::string read_file(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
}

// The program, its streams, and the outcomes of its cases.
class Shell {
  public:
    int run(const std::vector<std::string>& arguments) {
        out.str("");
        error.str("");
        ran.clear();
        const Surroundings surroundings{
            .cases = cases,
            .run_on_stage =
                [this](const Case& the_case, const StageSettings& settings) {
                    ran.emplace_back(the_case.id);
                    last_settings = settings;
                    return act ? act(the_case) : CaseOutcome{Verdict::pass, "", "", ""};
                },
            .check_set_up = [this](const StageSettings&) { return set_up_problem; },
            .out = out,
            .error = error,
            .error_shows_progress = terminal,
            .command = "tools/kmes conformance",
            .version = "kmes-conformance 7\n",
            .timeout_scale = "",
            .stop = stop,
            .commands = {{"smoke",
                          [this](const std::vector<std::string>& words, const Surroundings&) {
                              ran = words;
                              return 42;
                          }}},
            .describe_stepper = [](const StageSettings&) { return "guards: they work"; },
            .preflight =
                [this](const StageSettings&) {
                    ++preflights;
                    return preflight;
                },
            .other_form = [this](const std::vector<std::string>&, double) { return other_form; },
        };
        return run_program(arguments, surroundings);
    }
    // As run(), with a program to test after --.
    int test(std::vector<std::string> arguments = {}) {
        arguments.insert(arguments.end(), {"--", "./consumer", "an argument"});
        return run(arguments);
    }
    void fail_case(std::string_view id, Verdict verdict = Verdict::fail) {
        act = [id = std::string(id), verdict](const Case& the_case) {
            if (the_case.id != id) return CaseOutcome{Verdict::pass, "", "", ""};
            return CaseOutcome{verdict, "", "it is \xff wrong", "more\n"};
        };
    }

    std::vector<Case> cases = few_cases();
    std::function<CaseOutcome(const Case&)> act;
    std::string set_up_problem;
    Preflight preflight;
    std::string other_form;
    int preflights = 0;
    bool terminal = false;
    StopFlag stop;
    std::ostringstream out;
    std::ostringstream error;
    std::vector<std::string> ran;
    StageSettings last_settings;
};

TEST(Program, PrintsItsVersion) {
    Shell shell;
    EXPECT_EQ(shell.run({"--version"}), 0);
    EXPECT_EQ(shell.out.str(), "kmes-conformance 7\n");
    EXPECT_THAT(shell.ran, ElementsAre());
    EXPECT_EQ(shell.error.str(), "");
}

TEST(Program, RunsWhatIsUpToTheLevel) {
    Shell shell;
    EXPECT_EQ(shell.test(), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.5/maps", "5.1.8.3/checks", "E21/twice"));
    EXPECT_EQ(shell.test({"--level", "must"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.5/maps"));
    EXPECT_EQ(shell.test({"--level", "robust"}), 0);
    EXPECT_EQ(shell.ran.size(), 4u);
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

void write_file(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
}

TEST(Program, FailsWhereAnotherCaseIsUnsupportedThanExpected) {
    const Folder folder;
    const std::string list = folder.file("list");
    Shell shell;
    shell.fail_case("5.1.8.3/checks", Verdict::unsupported);
    write_file(list, "# why\n\n5.1.8.3/checks it cannot be had\nE7/torn-size not run\n");
    EXPECT_EQ(shell.test({"--expect-unsupported", list}), 0);
    EXPECT_EQ(shell.error.str(), "");
    write_file(list, "# none\n");
    EXPECT_EQ(shell.test({"--expect-unsupported", list}), 1);
    EXPECT_THAT(shell.error.str(), HasSubstr("5.1.8.3/checks is unsupported, and not expected"));
    write_file(list, "5.1.8.3/checks\nE21/twice\n");
    EXPECT_EQ(shell.test({"--expect-unsupported", list}), 1);
    EXPECT_THAT(shell.error.str(),
                HasSubstr("E21/twice is expected to be unsupported, and was not: pass"));
    // A verdict with precedence stays.
    shell.fail_case("E21/twice", Verdict::suite_error);
    EXPECT_EQ(shell.test({"--expect-unsupported", list}), 3);
}

TEST(Program, RefusesAListThatIsNone) {
    const Folder folder;
    Shell shell;
    EXPECT_EQ(shell.test({"--expect-unsupported", folder.file("none")}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("none: No such file or directory"));
    write_file(folder.file("list"), "5.1.5/maps\nE99/other\n");
    EXPECT_EQ(shell.test({"--expect-unsupported", folder.file("list")}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("there is no case \"E99/other\""));
    EXPECT_THAT(shell.ran, IsEmpty());
}

TEST(Program, LeavesOutWhatIsNotAskedFor) {
    Shell shell;
    shell.cases[0].demand = Demand::explored;
    shell.cases[1].demand = Demand::shared;
    shell.cases[2].demand = Demand::soak;
    shell.cases.push_back(case_of("E1/always", Level::must));
    EXPECT_EQ(shell.test(), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.5/maps", "E1/always"));
    EXPECT_EQ(shell.test({"--explore", "off"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("E1/always"));
    EXPECT_EQ(shell.test({"--shared", "--soak", "5"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.5/maps", "5.1.8.3/checks", "E21/twice", "E1/always"));
    // If a pattern selects only such cases, the error names the option that they need.
    EXPECT_EQ(shell.test({"--filter", "5.1.8.3/*"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("cases that need another option; add --shared"));
    EXPECT_EQ(shell.test({"--filter", "E21/*"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("add --soak SECONDS"));
    EXPECT_EQ(shell.test({"--filter", "5.1.5/*", "--explore", "off"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("add --explore quick"));
    shell.cases[2].demand = Demand::stream;
    EXPECT_EQ(shell.test({"--filter", "E21/*"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("add --stream FILE"));
    EXPECT_EQ(shell.test({"--filter", "E21/*", "--stream", "events"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("E21/twice"));
}

TEST(Program, RefusesToAskForWhatIsLeftOut) {
    Shell shell;
    shell.cases[1].demand = Demand::shared;
    shell.cases[1].level = Level::robust;
    shell.cases[2].demand = Demand::soak;
    shell.cases[2].level = Level::robust;
    EXPECT_EQ(shell.test({"--shared", "--level", "erratum"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("--shared adds cases of the level robust, which "
                                             "--level erratum excludes"));
    EXPECT_EQ(shell.test({"--soak", "5", "--level", "must"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("--soak SECONDS adds cases of the level robust"));
    EXPECT_EQ(shell.test({"--soak", "5", "--level", "robust", "--filter", "5.1.5/*"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("no --filter includes; --filter \"E21/twice\" does"));
    EXPECT_THAT(shell.ran, IsEmpty());
    shell.cases[2].demand = Demand::stream;
    EXPECT_EQ(shell.test({"--stream", "x", "--level", "robust", "--filter", "5.1.5/*"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("--stream FILE adds cases that no --filter includes"));
    EXPECT_THAT(shell.ran, IsEmpty());
    // --shared is permitted with any filters, because it asks for no time.
    EXPECT_EQ(shell.test({"--shared", "--level", "robust", "--filter", "5.1.5/*"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.5/maps"));
}

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

TEST(Program, DebugsOneCaseOfAnyLevel) {
    Shell shell;
    shell.cases[3].demand = Demand::shared;
    EXPECT_EQ(shell.test({"--debug", "E7/torn-size", "--explore", "off"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("E7/torn-size"));
    EXPECT_TRUE(shell.last_settings.debug);
    EXPECT_TRUE(shell.last_settings.shared);
    EXPECT_EQ(shell.test({"--debug", "E7/torn"}), 2);
    EXPECT_THAT(shell.error.str(),
                HasSubstr("there is no case \"E7/torn\"; nearest: E7/torn-size"));
    Shell clause;
    EXPECT_EQ(clause.test({"--explain", "E7"}), 2);
    EXPECT_THAT(clause.error.str(), HasSubstr("E7 is a clause, and no case; its cases: E7/torn-"));
    shell.cases[3].demand = Demand::soak;
    EXPECT_EQ(shell.test({"--debug", "E7/torn-size"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("also needs --soak SECONDS"));
    shell.cases[3].demand = Demand::stream;
    EXPECT_EQ(shell.test({"--debug", "E7/torn-size"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("also needs --stream FILE"));
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

TEST(Program, ShufflesTheCasesTheSameWayForTheSameSeed) {
    std::set<std::vector<std::string>> orders;
    for (int seed = 1; seed <= 30; ++seed) {
        Shell shell;
        EXPECT_EQ(shell.test({"--shuffle", std::to_string(seed)}), 0);
        EXPECT_THAT(shell.ran, UnorderedElementsAre("5.1.5/maps", "5.1.8.3/checks", "E21/twice"));
        Shell again;
        EXPECT_EQ(again.test({"--shuffle", std::to_string(seed)}), 0);
        EXPECT_EQ(again.ran, shell.ran);
        orders.insert(shell.ran);
    }
    EXPECT_EQ(orders.size(), 6u);
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

// A case that found this clause broken, after this many steps.
CaseOutcome failure_after(int steps, const std::string& clause) {
    auto record = std::make_shared<RunRecord>();
    record->findings.emplace_back();
    for (int i = 0; i < steps; ++i) {
        TimelineStep step;
        step.text = "step " + std::to_string(i) + " of " + clause;
        record->timeline.add(std::move(step));
    }
    CaseOutcome outcome{Verdict::fail, clause, "wrong", ""};
    outcome.record = std::move(record);
    return outcome;
}

TEST(Program, DrawsTheFailuresThatTellMostWhateverRanFirst) {
    Shell shell;
    shell.cases = {case_of("E10/one", Level::erratum), case_of("E10/two", Level::erratum),
                   case_of("E10/three", Level::erratum), case_of("E10/four", Level::erratum),
                   case_of("E3/meant", Level::erratum)};
    shell.act = [](const Case& the_case) {
        return failure_after(the_case.id == "E10/one" ? 40 : 20, "E3");
    };
    EXPECT_EQ(shell.test(), 1);
    // Each case runs; then the drawn one runs again, with every access recorded.
    EXPECT_THAT(shell.ran,
                ElementsAre("E10/one", "E10/two", "E10/three", "E10/four", "E3/meant", "E3/meant"));
    EXPECT_TRUE(shell.last_settings.record_accesses);
    EXPECT_THAT(shell.out.str(), HasSubstr("\n    4 more cases of E3 (-v prints them in full):\n"
                                           "        E10/one  wrong\n"
                                           "        E10/two  wrong\n"
                                           "        E10/three  wrong\n"
                                           "        E10/four  wrong\n"));
    EXPECT_THAT(shell.out.str(), HasSubstr("    E3           5 cases  E3/meant\n"));
}

TEST(Program, DrawsNoMoreThanThreeClauses) {
    Shell shell;
    shell.cases = {case_of("E1/one", Level::erratum), case_of("E2/one", Level::erratum),
                   case_of("E3/one", Level::erratum), case_of("E4/one", Level::erratum)};
    shell.act = [](const Case& the_case) {
        return failure_after(20, std::string(the_case.clause));
    };
    EXPECT_EQ(shell.test(), 1);
    EXPECT_EQ(shell.ran.size(), 4u + 3u);
    EXPECT_THAT(shell.out.str(),
                HasSubstr("(the picture of this failure: run it again as below, or with -v)"));
}

TEST(Program, DrawsEachFailureAtOnceWhereAllAreAskedFor) {
    Shell shell;
    shell.cases = {case_of("E3/one", Level::erratum), case_of("E3/two", Level::erratum)};
    shell.act = [](const Case&) { return failure_after(3, "E3"); };
    EXPECT_EQ(shell.test({"-v"}), 1);
    EXPECT_THAT(shell.ran, ElementsAre("E3/one", "E3/one", "E3/two", "E3/two"));
}

TEST(Program, SpeaksOfTheRunThatIsDrawn) {
    Shell shell;
    shell.cases = {case_of("E3/one", Level::erratum)};
    shell.act = [&shell](const Case&) {
        return failure_after(3, shell.last_settings.record_accesses ? "E24" : "E3");
    };
    EXPECT_EQ(shell.test(), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("fail E3/one (clause E24)"));
    EXPECT_THAT(shell.out.str(), HasSubstr("step 2 of E24"));
}

TEST(Program, RunsAReplayTheSameWay) {
    Shell shell;
    shell.fail_case("E7/torn-size");
    EXPECT_EQ(shell.test({"--level", "robust", "--timeout-scale", "2.5"}), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("--filter E7/torn-size --level robust --cpus 4 "
                                           "--capacity 65536 --seed 1 --timeout-scale 2.5 -- "));
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

TEST(Program, CallsAFilterThatMatchesNothingBadUsage) {
    Shell shell;
    EXPECT_EQ(shell.test({"--filter", "E21/twise"}), 2);
    EXPECT_THAT(shell.ran, IsEmpty());
    EXPECT_THAT(shell.error.str(), HasSubstr("--filter \"E21/twise\" matches no case"));
    EXPECT_THAT(shell.error.str(), HasSubstr("(nearest: E21/twice)"));
    // A name that is far from all others is given no neighbours.
    EXPECT_EQ(shell.test({"--filter", "xyzzy"}), 2);
    EXPECT_THAT(shell.error.str(), Not(HasSubstr("nearest")));
    EXPECT_EQ(shell.test({"--filter", "E21"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("(E21 is a clause: 'E21/*' matches its cases)"));
    // A pattern that matches nothing is reported, even if another one matches.
    EXPECT_EQ(shell.test({"--filter", "E21/*", "--filter", "E99/*"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("E99/*"));
    EXPECT_EQ(shell.test({"--filter", "E7/*"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("above the level erratum; --level robust includes"));
}

TEST(Program, FiltersByPattern) {
    Shell shell;
    EXPECT_EQ(shell.test({"--filter", "E*", "--filter", "*maps"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.5/maps", "E21/twice"));
    EXPECT_EQ(shell.test({"--filter", "5.1.?.3/*"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.8.3/checks"));
}

TEST(Program, LeavesOutByPattern) {
    Shell shell;
    EXPECT_EQ(shell.test({"--without", "5.1.8.3/*"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.5/maps", "E21/twice"));
    EXPECT_EQ(shell.test({"--filter", "5*", "--without", "*maps"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.8.3/checks"));
    EXPECT_EQ(shell.test({"--filter", "5*", "--without", "E21/*"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("--without \"E21/*\" matches only cases that would"));
    EXPECT_EQ(shell.test({"--without", "E21/twise"}), 2);
    EXPECT_THAT(shell.error.str(),
                HasSubstr("matches no case; --list prints them all (nearest: E21/t"));
    EXPECT_EQ(shell.test({"--filter", "E21/*", "--without", "E*"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("--without leaves no case to run"));
}

TEST(Program, ListsCases) {
    Shell shell;
    EXPECT_EQ(shell.run({"--list"}), 0);
    EXPECT_EQ(shell.out.str(),
              "5.1.5/maps      must     a title\n"
              "5.1.8.3/checks  should   a title\n"
              "E21/twice       erratum  a title\n"
              "E7/torn-size    robust   a title\n");
    EXPECT_EQ(shell.run({"--list", "--level", "must"}), 0);
    EXPECT_EQ(shell.out.str(), "5.1.5/maps  must     a title\n");
    EXPECT_EQ(shell.run({"--list", "--filter", "nothing"}), 2);
    // A default run has the first of these, and not the others.
    shell.cases[0].demand = Demand::explored;
    shell.cases[1].demand = Demand::holes;
    shell.cases[3].demand = Demand::shared;
    EXPECT_EQ(shell.run({"--list"}), 0);
    EXPECT_EQ(shell.out.str(),
              "5.1.5/maps      must     a title\n"
              "5.1.8.3/checks  should   a title (--layout D)\n"
              "E21/twice       erratum  a title\n"
              "E7/torn-size    robust   a title (--shared)\n");
}

TEST(Program, ExplainsACase) {
    Shell shell;
    EXPECT_EQ(shell.run({"--explain", "E7/torn-size"}), 0);
    EXPECT_EQ(shell.out.str(),
              "E7/torn-size\n\nlevel:       robust\nclause:      E7\ntitle:       a title\n\n"
              "what is done: what is done\n\nwhat is right: what is right\n");
    EXPECT_EQ(shell.run({"--explain", "torn"}), 2);
    EXPECT_EQ(shell.error.str().rfind("kmes-conformance: there is no case \"torn\"; nearest: "
                                      "E7/torn-size\n",
                                      0),
              0u);
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

TEST(Program, LooksAtTheReportFileBeforeTheRun) {
    Shell shell;
    EXPECT_EQ(shell.test({"--report", "html:/no/such/folder/r.html"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("of the html report is not there"));
    EXPECT_EQ(shell.test({"--report-file", "/no/such/folder/r.json"}), 2);
    EXPECT_EQ(shell.test({"--report-file", "/proc/r.json"}), 3);
    EXPECT_THAT(shell.error.str(), HasSubstr("cannot write the report file"));
    EXPECT_THAT(shell.ran, IsEmpty());
}

TEST(Program, EndsBeforeTheFirstCaseWhereTheAdapterCannotWork) {
    Shell shell;
    shell.preflight = {"  line 1: oh no\n      is:    \"E\"\n", 1, "line 1: oh no"};
    EXPECT_EQ(shell.test(), 1);
    EXPECT_THAT(shell.ran, IsEmpty());
    EXPECT_EQ(
        shell.out.str(),
        "kmes-conformance 1: ./consumer 'an argument'\n"
        "3 cases, 4 CPUs, capacity 65536 bytes, seed 1\n"
        "\n"
        "the adapter cannot work, and no case was run:\n"
        "  line 1: oh no\n"
        "      is:    \"E\"\n"
        "    check the adapter alone: tools/kmes conformance smoke -- ./consumer 'an argument'\n"
        "    run the cases nevertheless: tools/kmes conformance --no-preflight -- ./consumer "
        "'an argument'\n"
        "\n"
        "0 cases: 0 pass, 0 fail, 3 not run; 0.0 s\n");
    EXPECT_EQ(shell.error.str(), "");
    shell.preflight.status = 4;
    EXPECT_EQ(shell.test({"--report", "json"}), 4);
    const nlohmann::json parsed = nlohmann::json::parse(shell.out.str());
    EXPECT_EQ(parsed["preflight"], shell.preflight.mistakes);
    EXPECT_EQ(parsed["not_run"].size(), 3u);
    EXPECT_EQ(shell.error.str(),
              "kmes-conformance: the adapter cannot work: line 1: oh no (--no-preflight runs the "
              "cases nevertheless)\n");
}

TEST(Program, SaysInALineThatAProgramCannotBeStarted) {
    Shell shell;
    shell.preflight = {"  ./p: no interpreter\n", 3, "./p: no interpreter", true};
    EXPECT_EQ(shell.test(), 3);
    EXPECT_EQ(shell.out.str(), "");
    EXPECT_EQ(shell.error.str(), "kmes-conformance: ./p: no interpreter\n");
}

TEST(Program, KeepsTheOptionsInWhatItSuggestsAfterThePreflight) {
    Shell shell;
    shell.preflight = {"  no\n", 1, "no"};
    EXPECT_EQ(shell.test({"--cpus", "2", "--timeout-scale", "2"}), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("smoke --timeout-scale 2 -- ./consumer"));
    EXPECT_THAT(shell.out.str(),
                HasSubstr(" --cpus 2 --timeout-scale 2 --no-preflight -- ./consumer"));
}

TEST(Program, SaysByWhichFormAProgramAttachesThatCannotWork) {
    Shell shell;
    shell.preflight = {"  no\n", 1, "no"};
    shell.other_form = "the program attaches as a consumer of form A does";
    EXPECT_EQ(shell.test(), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("no case was run:\n"
                                           "  the program attaches as a consumer of form A does\n"
                                           "  no\n"));
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

// The pattern must not match another clause that begins with the same letters.
TEST(Program, FiltersTheCasesOfOneClause) {
    Shell shell;
    const std::vector<std::string> ids = {"E1/a", "E1/b", "E1/c", "E1/d", "E1/e", "E10/f", "E11/g"};
    shell.cases.clear();
    for (const std::string& id : ids) shell.cases.push_back(case_of(id, Level::erratum));
    shell.cases[5].clause = shell.cases[6].clause = "E1";
    EXPECT_EQ(shell.run({"--explain", "E1"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("and 1 more (--list --filter 'E1/*')"));
}

TEST(Program, NamesTheCasesOfThePartsOfAClause) {
    Shell shell;
    EXPECT_EQ(shell.run({"--explain", "5.1.8"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("5.1.8 is a clause, and no case; its cases: "
                                             "5.1.8.3/checks"));
    EXPECT_EQ(shell.run({"--explain", "5.1"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("its cases: 5.1.5/maps, 5.1.8.3/checks"));
    EXPECT_EQ(shell.run({"--explain", "xyzzy"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("no case \"xyzzy\"; --list prints them all"));
}

TEST(Program, RunsNoPreflightWhereThatIsAskedOrOfNoUse) {
    Shell shell;
    EXPECT_EQ(shell.test(), 0);
    EXPECT_EQ(shell.preflights, 1);
    shell.preflight = {"  no\n", 1, "no"};
    shell.fail_case("5.1.5/maps");
    EXPECT_EQ(shell.test({"--no-preflight"}), 1);
    EXPECT_EQ(shell.ran.size(), 3u);
    EXPECT_THAT(shell.out.str(), HasSubstr("--seed 1 --no-preflight -- ./consumer"));
    shell.act = nullptr;
    EXPECT_EQ(shell.test({"--debug", "5.1.5/maps"}), 0);
    EXPECT_EQ(shell.test({"--device", "/dev/kmes"}), 0);
    EXPECT_EQ(shell.preflights, 1);
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

TEST(Program, EndsWhereNothingCanRun) {
    Shell shell;
    shell.set_up_problem = "ptrace is not permitted";
    EXPECT_EQ(shell.test(), 3);
    EXPECT_EQ(shell.error.str(), "kmes-conformance: ptrace is not permitted\n");
    EXPECT_THAT(shell.ran, IsEmpty());
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

TEST(Program, FindsMistakesInTheListOfCases) {
    Shell shell;
    shell.cases.push_back(shell.cases[0]);
    EXPECT_EQ(shell.test(), 3);
    EXPECT_THAT(shell.error.str(), HasSubstr("5.1.5/maps stands in it twice"));
}

TEST(CheckCases, WantsIdsTextsAndAFunction) {
    EXPECT_EQ(check_cases(few_cases()), "");
    EXPECT_EQ(check_cases({}), "it is empty");
    for (const std::string_view id : {"maps", "/maps", "5.1.5/", "5.1.5/Maps", "5.1.5/a b",
                                      "5.1.5/a/b", "5 1/maps", "5.1.5/maps_all"}) {
        EXPECT_THAT(check_cases({case_of(id, Level::must)}), HasSubstr("is no id"));
    }
    Case without = case_of("a/b", Level::must);
    without.title = "";
    EXPECT_EQ(check_cases({without}), "a/b has no title");
    without = case_of("a/b", Level::must);
    without.run = nullptr;
    EXPECT_EQ(check_cases({without}), "a/b has no function");
}

TEST(NearestIds, PutsWhatContainsTheNameFirst) {
    const std::vector<Case> cases = few_cases();
    EXPECT_EQ(nearest_ids(cases, "checks", 1)[0], "5.1.8.3/checks");
    EXPECT_EQ(nearest_ids(cases, "E12/twice", 1)[0], "E21/twice");
    EXPECT_EQ(nearest_ids(cases, "", 2).size(), 2u);
    EXPECT_EQ(nearest_ids({}, "x").size(), 0u);
}

}  // namespace
}  // namespace kmes::conformance
