// SPDX-License-Identifier: MIT
//
// One or two signals at every point of a run: every report contains every case that had finished.
#include "conformance/main/interrupt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "conformance/cases/registry.h"
#include "conformance/main/failure_commands.h"
#include "conformance/main/program.h"
#include "conformance/main/testing.h"
#include "conformance/model/case.h"
#include "conformance/model/run_record.h"
#include "conformance/model/settings.h"
#include "conformance/monitors/run.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;

constexpr const char* kCorrect = "conformance/testees/reference";
constexpr const char* kBroken = "conformance/testees/broken_moves-tail-pos";

constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

std::size_t count_files(const std::string& folder) {
    if (!std::filesystem::exists(folder)) return 0;
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

// A run whose flag is set at its n-th check.
class InterruptedRun {
  public:
    InterruptedRun(int signal_number, std::uint64_t at) {
        stop_.before_each_check = [this, signal_number, at] {
            if (++checks_ == at) stop_.ask(signal_number);
            // A second signal while the first one is handled.
            if (checks_ == at + 1) stop_.ask(signal_number == SIGINT ? SIGTERM : SIGINT);
        };
    }

    int run(const std::vector<Case>& cases, const std::vector<std::string>& arguments,
            std::function<CaseOutcome(const Case&, const StageSettings&)> play) {
        const Surroundings around{
            .cases = cases,
            .run_on_stage = std::move(play),
            .check_set_up = [](const StageSettings&) { return std::string(); },
            .out = out,
            .error = error,
            .timeout_scale = "",
            .stop = stop_,
            .commands = failure_commands(),
        };
        return run_program(arguments, around);
    }

    bool came() const { return stop_.signal() != 0; }

    std::ostringstream out;
    std::ostringstream error;

  private:
    StopFlag stop_;
    std::atomic<std::uint64_t> checks_{0};
};

// The JSON report, the report file, the console report and the folder of --save contain the
// finished cases. These are the first ones, with their usual verdicts.
void expect_whole(const std::vector<Case>& cases, const std::vector<std::string>& verdicts,
                  const Folder& folder, const std::string& console) {
    const auto json = nlohmann::json::parse(read_file(folder.file("report")), nullptr, false);
    ASSERT_FALSE(json.is_discarded());
    const std::size_t finished = json["cases"].size();
    ASSERT_LE(finished, cases.size());
    std::size_t failed = 0;
    for (std::size_t i = 0; i < finished; ++i) {
        const std::string id(cases[i].id);
        EXPECT_EQ(json["cases"][i]["id"], id);
        EXPECT_EQ(json["cases"][i]["verdict"], verdicts[i]);
        // A whole run has a row for each case with -v only.
        if (finished < cases.size()) {
            EXPECT_THAT(console, HasSubstr("\n" + id + " "));
        }
        if (verdicts[i] != "fail") continue;
        EXPECT_THAT(console, HasSubstr("\nfail " + id));
        ++failed;
    }
    EXPECT_EQ(json["summary"]["fail"], failed);
    EXPECT_EQ(json.contains("interrupted"), finished < cases.size());
    EXPECT_EQ(json.contains("not_run") ? json["not_run"].size() : 0, cases.size() - finished);
    EXPECT_EQ(count_files(folder.file("saved")), failed);
}

Case made_up(std::string_view id) {
    return {id, Level::must, "title", "what is done", "what is right", [](Stage&) -> CaseOutcome {
                throw std::logic_error("the test plays it");
            }};
}

CaseOutcome failure_with_a_trace() {
    auto record = std::make_shared<RunRecord>();
    record->history.complete = false;
    record->findings.emplace_back();
    TimelineStep step;
    step.text = "a step";
    record->timeline.add(std::move(step));
    CaseOutcome outcome{Verdict::fail, "5.1.5", "wrong", ""};
    outcome.record = std::move(record);
    return outcome;
}

// Like the stage, checks the flag from time to time, and ends at once if it is set.
CaseOutcome play_made_up(const Case& the_case, const StageSettings& settings) {
    for (int i = 0; i < 3; ++i) {
        if (*settings.stop) return {Verdict::suite_error, "", "interrupted", ""};
    }
    if (the_case.id == "5.1.5/fails") return failure_with_a_trace();
    return {Verdict::pass, "", "", ""};
}

const std::vector<Case>& made_up_cases() {
    static const std::vector<Case> kCases{made_up("5.1.5/passes"), made_up("5.1.5/fails"),
                                          made_up("5.1.5/passes-too")};
    return kCases;
}

std::vector<std::string> every_report(const Folder& folder) {
    return {"--report",          "json", "--report-file", folder.file("report"), "--save",
            folder.file("saved")};
}

class AtEveryPoint : public ::testing::TestWithParam<int> {};

TEST_P(AtEveryPoint, EveryReportHasTheFinishedCases) {
    for (const bool verbose : {false, true}) {
        bool came = true;
        for (std::uint64_t at = 1; came; ++at) {
            SCOPED_TRACE(at);
            const Folder folder;
            InterruptedRun run(GetParam(), at);
            std::vector<std::string> words = every_report(folder);
            if (verbose) words.emplace_back("-v");
            words.insert(words.end(), {"--", "./consumer"});
            const int status = run.run(made_up_cases(), words, play_made_up);
            came = run.came();
            EXPECT_EQ(status, came ? 128 + GetParam() : 1) << run.error.str();
            expect_whole(made_up_cases(), {"pass", "fail", "pass"}, folder, run.out.str());
        }
    }
}

TEST_P(AtEveryPoint, JsonOnStandardOutputIsWhole) {
    bool came = true;
    for (std::uint64_t at = 1; came; ++at) {
        InterruptedRun run(GetParam(), at);
        run.run(made_up_cases(), {"--report", "json", "--", "./consumer"}, play_made_up);
        came = run.came();
        EXPECT_FALSE(nlohmann::json::parse(run.out.str(), nullptr, false).is_discarded());
    }
}

TEST_P(AtEveryPoint, ReplayJudgeAndShrinkHaveTheStatusOfTheSignal) {
    const Folder folder;
    {
        InterruptedRun whole(GetParam(), kNever);
        std::vector<std::string> words = every_report(folder);
        words.insert(words.end(), {"--", "./consumer"});
        ASSERT_EQ(whole.run(made_up_cases(), words, play_made_up), 1);
    }
    const std::string file = folder.file("saved") + "/5.1.5-fails.json";
    for (const std::string command : {"replay", "judge", "shrink"}) {
        bool came = true;
        for (std::uint64_t at = 1; came; ++at) {
            SCOPED_TRACE(command);
            InterruptedRun run(GetParam(), at);
            const int status = run.run(made_up_cases(), {command, file}, play_made_up);
            came = run.came();
            EXPECT_EQ(status == 128 + GetParam(), came) << run.out.str();
        }
    }
}

// A real stage and a real testee. Each case checks the flag several hundred times; the tested
// points are denser at the beginning of the run.
TEST_P(AtEveryPoint, OfARealRun) {
    std::vector<Case> cases;
    for (const Case& each : all_cases()) {
        if (each.id == "5.1.5/attach-and-map" || each.id == "5.1.8.1-6/drain")
            cases.push_back(each);
    }
    ASSERT_EQ(cases.size(), 2u);
    bool came = true;
    for (std::uint64_t at = 1; came; at += 1 + at / 10) {
        SCOPED_TRACE(at);
        const Folder folder;
        InterruptedRun run(GetParam(), at);
        std::vector<std::string> words = every_report(folder);
        words.insert(words.end(), {"--cpus", "1", "--", kBroken});
        const int status = run.run(cases, words, run_on_stage);
        came = run.came();
        EXPECT_EQ(status, came ? 128 + GetParam() : 1) << run.error.str();
        expect_whole(cases, {"pass", "fail"}, folder, run.out.str());
    }
}

INSTANTIATE_TEST_SUITE_P(Signals, AtEveryPoint, ::testing::Values(SIGINT, SIGTERM),
                         [](const auto& parameter) {
                             return std::string(parameter.param == SIGINT ? "Int" : "Term");
                         });

// The run for the trace of a failure throws something other than a std::exception.
TEST(AnException, EndsWithTheReportWritten) {
    const Folder folder;
    InterruptedRun run(SIGINT, kNever);
    std::vector<std::string> words = every_report(folder);
    words.insert(words.end(), {"--", "./consumer"});
    const auto play = [](const Case& the_case, const StageSettings& settings) {
        if (settings.record_accesses) throw 1;
        return play_made_up(the_case, settings);
    };
    EXPECT_EQ(run.run(made_up_cases(), words, play), 1);
    expect_whole(made_up_cases(), {"pass", "fail", "pass"}, folder, run.out.str());
}

TEST(Signals, SetTheFlagAndDoNotEndTheProcess) {
    EXPECT_EXIT(
        {
            const StopFlag& flag = watch_interrupts();
            if (flag) ::_exit(1);
            ::raise(SIGTERM);
            ::raise(SIGINT);
            ::raise(SIGHUP);
            ::_exit(flag ? flag.status_or(2) : 3);
        },
        ::testing::ExitedWithCode(143), "");
}

TEST(Signals, EndTheProgramWithBothReports) {
    const Folder folder;
    Process program(
        {"-v", "--report", "json", "--report-file", folder.file("report"), "--", kCorrect});
    ASSERT_TRUE(program.wait_for("\n5.1.1/"));
    program.send(SIGTERM);
    program.send(SIGINT);
    const int status = program.end();
    EXPECT_TRUE(status == 143 || status == 130) << status;
    const auto json = nlohmann::json::parse(read_file(folder.file("report")), nullptr, false);
    ASSERT_FALSE(json.is_discarded());
    ASSERT_GE(json["cases"].size(), 1u);
    for (const auto& each : json["cases"])
        EXPECT_THAT(program.out, HasSubstr("\n" + std::string(each["id"]) + " "));
    EXPECT_THAT(program.out, HasSubstr("not run (interrupted)"));
}

}  // namespace
}  // namespace kmes::conformance
