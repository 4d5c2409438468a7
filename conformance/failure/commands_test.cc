// SPDX-License-Identifier: MIT
//
// judge, replay and shrink from a file to their exit status and words. A function replaces the
// stage.
#include "conformance/failure/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "conformance/failure/failure_file.h"
#include "conformance/oracle/driver_findings.h"
#include "conformance/oracle/history.h"
#include "conformance/oracle/judge.h"
#include "conformance/oracle/record.h"
#include "conformance/report/result.h"

namespace kmes::conformance {
namespace {

using testing::HasSubstr;

constexpr std::string_view kLost = "5.1.8.2-2";

CaseOutcome pass() {
    CaseOutcome outcome;
    outcome.verdict = Verdict::pass;
    return outcome;
}

// One event is emitted, and the report contains it twice.
CaseOutcome fail(const std::optional<Schedule>& schedule) {
    History history(HistorySettings{});
    history.note_attached(0);
    EventSpec event;
    event.type = "t";
    history.emit(0, event);
    RunRecord record;
    record.schedule = schedule;
    record.history = history.log();
    record.report = "E 0 1 0 0 74 0 cbf29ce484222325\nE 0 1 0 0 74 0 cbf29ce484222325\n";
    record.judge_options.cut_short = true;
    RecordParser parser;
    parser.feed(record.report);
    parser.finish();
    record.driver_findings = {contract_finding("it was seen to do nothing")};
    record.driver_findings[0].clause = kLost;
    record.findings = record.driver_findings;
    const std::vector<Finding> judged = judge(history, parser, record.judge_options);
    record.findings.insert(record.findings.end(), judged.begin(), judged.end());
    CaseOutcome outcome;
    outcome.verdict = Verdict::fail;
    outcome.clause = kLost;
    outcome.message = record.findings.front().message;
    outcome.details = "and more\n";
    outcome.record = std::make_shared<RunRecord>(record);
    return outcome;
}

CaseOutcome fail_otherwise() {
    CaseOutcome outcome = fail(std::nullopt);
    auto record = std::make_shared<RunRecord>(*outcome.record);
    record->findings.front() = crash(11, "Segmentation fault", "");
    outcome.record = record;
    outcome.clause = record->findings.front().clause;
    outcome.message = record->findings.front().message;
    return outcome;
}

Move move_at(std::uint64_t occurrence, Action action) {
    return {{1, 0, 64, 8, false, occurrence, 0}, action, 0};
}

class CommandsTest : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "/commands-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
        Case fixed;
        fixed.id = "5.1.8.2-2/recheck";
        Case explored;
        explored.id = "5.1.8.2/explored-sleep";
        explored.demand = Demand::explored;
        cases_ = {fixed, explored};
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::string save(const Case& the_case, const std::optional<Schedule>& schedule) {
        StageSettings settings;
        settings.testee = {"./consumer", "a b"};
        settings.seed = 5;
        settings.cpus = 1;
        FailureFolder folder;
        EXPECT_EQ(folder.open(folder_), "");
        const auto saved = folder.save(make_failure_file(the_case, settings, fail(schedule)));
        EXPECT_EQ(saved.error, "");
        return saved.path;
    }
    std::string save_explored() {
        return save(cases_[1],
                    Schedule{"sleep", 3, {move_at(1, Action::wake), move_at(4, Action::lap)}});
    }

    FailureTools tools() {
        return {cases_,
                [this](const Case& the_case, const StageSettings& settings) {
                    EXPECT_NE(settings.stop, nullptr);
                    ran_ = &the_case;
                    settings_ = settings;
                    ++runs_;
                    return run_(settings);
                },
                [this](const StageSettings&) { return problem_; },
                out_,
                error_,
                "kmes-conformance",
                stop_};
    }

    std::string folder_;
    std::vector<Case> cases_;
    std::ostringstream out_;
    std::ostringstream error_;
    StopFlag stop_;
    std::string problem_;
    std::function<CaseOutcome(const StageSettings&)> run_ = [](const StageSettings&) {
        return pass();
    };
    const Case* ran_ = nullptr;
    StageSettings settings_;
    int runs_ = 0;
};

TEST_F(CommandsTest, JudgeFindsWhatTheFileSays) {
    const std::string path = save(cases_[0], std::nullopt);
    EXPECT_EQ(judge_command(path, tools()), kExitFailed);
    EXPECT_THAT(out_.str(), HasSubstr("judged again: the same findings as in the file\n"));
    EXPECT_THAT(out_.str(), HasSubstr("doubled-event"));
    EXPECT_THAT(out_.str(), HasSubstr("and not judged again:\n  5.1.8.2-2 contract: it was "
                                      "seen to do nothing\n"));
    EXPECT_EQ(error_.str(), "");
    EXPECT_EQ(runs_, 0);
}

TEST_F(CommandsTest, ASchedulePartlyKeptIsNotPlayed) {
    Schedule schedule{"sleep", 3, std::vector<Move>(10'001, move_at(1, Action::wake))};
    const std::string path = save(cases_[1], schedule);
    const std::string line =
        "kmes-conformance: " + path +
        ": schedule.left_out is 1: the schedule had more moves than a file keeps, so it cannot be "
        "played; --filter '5.1.8.2/explored-sleep' runs the whole case\n";
    EXPECT_EQ(replay_command(path, {}, tools()), kExitUsage);
    EXPECT_EQ(error_.str(), line);
    EXPECT_EQ(shrink_command(path, {}, tools()), kExitUsage);
    EXPECT_EQ(error_.str(), line + line);
    EXPECT_EQ(runs_, 0);
    EXPECT_EQ(judge_command(path, tools()), kExitFailed);

    // The moves of a drawn schedule follow from its seed.
    schedule.drawn = true;
    EXPECT_EQ(replay_command(save(cases_[1], schedule), {}, tools()), kExitClean);
    EXPECT_EQ(runs_, 1);
}

TEST_F(CommandsTest, JudgeSaysWhereItDiffers) {
    const std::string path = save(cases_[0], std::nullopt);
    ReadFailure read = read_failure_file(path);
    read.file.record.report = "E 0 1 0 0 74 0 cbf29ce484222325\n";
    ASSERT_EQ(write_failure_file(read.file, path), "");
    EXPECT_EQ(judge_command(path, tools()), kExitFailed);  // the driver's finding remains
    EXPECT_THAT(out_.str(), HasSubstr("judged again: not the findings of the file\n  file: "));
    EXPECT_THAT(out_.str(), HasSubstr("  now:  nothing\n"));
}

TEST_F(CommandsTest, JudgeRefusesWhatIsNoFile) {
    const std::string path = folder_ + "/x.json";
    std::ofstream(path) << "{\"kmes_failure\":9}";
    EXPECT_EQ(judge_command(path, tools()), kExitUsage);
    EXPECT_EQ(error_.str(),
              "kmes-conformance: " + path +
                  ": kmes_failure is 9; expected 2, the only format that this suite knows\n");
    EXPECT_EQ(out_.str(), "");
}

TEST_F(CommandsTest, ReplayRunsAsTheFileSays) {
    run_ = [](const StageSettings& settings) { return fail(settings.schedule); };
    EXPECT_EQ(replay_command(save_explored(), {}, tools()), kExitFailed);
    EXPECT_EQ(ran_->id, cases_[1].id);
    EXPECT_EQ(settings_.testee, (std::vector<std::string>{"./consumer", "a b"}));
    EXPECT_EQ(settings_.seed, 5u);
    EXPECT_EQ(settings_.cpus, 1u);
    ASSERT_TRUE(settings_.schedule);
    EXPECT_EQ(settings_.schedule->moves.size(), 2u);
    EXPECT_EQ(settings_.stop, &stop_);
    EXPECT_THAT(out_.str(), HasSubstr("now      the case fails again in the same way\n"));
    EXPECT_THAT(out_.str(),
                HasSubstr("  2. phase 1, CPU 0: before read 4 of the 8 bytes at 64: lap\n"));
    EXPECT_THAT(out_.str(), HasSubstr("testee   ./consumer 'a b'\n"));
}

TEST_F(CommandsTest, AFileMayHaveTheFormerIdOfItsCase) {
    const std::string path = save(cases_[0], std::nullopt);
    cases_[0].former_id = cases_[0].id;
    cases_[0].id = "5.1.8.2/later";
    EXPECT_EQ(replay_command(path, {}, tools()), kExitClean);
    EXPECT_EQ(ran_, &cases_[0]);
    EXPECT_EQ(runs_, 1);
}

// A case can say what is wrong with a schedule, and can describe its moves.
TEST_F(CommandsTest, AScheduleThatIsNotOfItsCaseIsRefused) {
    cases_[0].schedule_problem = [](const Schedule& schedule) {
        return schedule.moves.size() == 1 ? "" : "move 2 is of step 99\n";
    };
    cases_[0].describe_move = [](const Move&) { return "step 7: emit"; };
    const std::string right = save(cases_[0], Schedule{"row", 3, {move_at(1, Action::nothing)}});
    EXPECT_EQ(replay_command(right, {}, tools()), kExitClean);
    EXPECT_THAT(out_.str(), HasSubstr("  1. step 7: emit\n"));
    const std::string wrong = save(
        cases_[0], Schedule{"row", 3, {move_at(1, Action::nothing), move_at(2, Action::nothing)}});
    runs_ = 0;
    EXPECT_EQ(replay_command(wrong, {}, tools()), kExitUsage);
    EXPECT_EQ(shrink_command(wrong, {}, tools()), kExitUsage);
    EXPECT_EQ(runs_, 0);
    const std::string line =
        "kmes-conformance: " + wrong + ": schedule: move 2 is of step 99\\x0a\n";
    EXPECT_EQ(error_.str(), line + line);
}

TEST_F(CommandsTest, ReplayTakesAnotherTestee) {
    ReplayOptions options;
    options.testee = {"other"};
    options.timeout_scale = 4;
    EXPECT_EQ(replay_command(save_explored(), options, tools()), kExitClean);
    EXPECT_EQ(settings_.testee, std::vector<std::string>{"other"});
    EXPECT_EQ(settings_.timeout_scale, 4);
    EXPECT_THAT(out_.str(), HasSubstr("now      the case passes\n"));
}

TEST_F(CommandsTest, ReplayTellsAnotherFailureFromTheSame) {
    run_ = [](const StageSettings&) { return fail_otherwise(); };
    EXPECT_EQ(replay_command(save_explored(), {}, tools()), kExitFailed);
    EXPECT_THAT(out_.str(), HasSubstr("now      the case fails in another way\n"));
    EXPECT_THAT(out_.str(), HasSubstr("Segmentation fault"));
}

TEST_F(CommandsTest, ReplayEndsWithTheFirstRunThatIsNoPass) {
    run_ = [this](const StageSettings&) { return runs_ < 3 ? pass() : fail(std::nullopt); };
    ReplayOptions options;
    options.times = 10;
    EXPECT_EQ(replay_command(save(cases_[0], std::nullopt), options, tools()), kExitFailed);
    EXPECT_EQ(runs_, 3);
    EXPECT_THAT(out_.str(), HasSubstr("runs     3\n"));
}

TEST_F(CommandsTest, ReplaySaysWhatItCannotRun) {
    const std::string path = save(cases_[0], std::nullopt);
    problem_ = "./consumer: No such file or directory";
    EXPECT_EQ(replay_command(path, {}, tools()), kExitSuite);
    EXPECT_EQ(error_.str(), "kmes-conformance: ./consumer: No such file or directory\n");
    cases_.erase(cases_.begin());
    error_.str("");
    EXPECT_EQ(replay_command(path, {}, tools()), kExitUsage);
    EXPECT_THAT(error_.str(), HasSubstr("case is \"5.1.8.2-2/recheck\", which this suite does not "
                                        "have"));
    EXPECT_EQ(runs_, 0);
}

TEST_F(CommandsTest, ShrinkWritesTheSmallestBesideTheFile) {
    run_ = [](const StageSettings& settings) {
        for (const Move& move : settings.schedule->moves) {
            if (move.action == Action::lap && move.point.occurrence == 4 && move.point.phase == 1)
                return fail(settings.schedule);
        }
        return pass();
    };
    const std::string path = save_explored();
    EXPECT_EQ(shrink_command(path, {}, tools()), kExitClean);
    const std::string smallest = folder_ + "/5.1.8.2-explored-sleep.smallest.json";
    EXPECT_THAT(out_.str(),
                HasSubstr("the smallest failing schedule:\n  1. phase 1, CPU 0: before read "
                          "4 of the 8 bytes at 64: lap\n"));
    EXPECT_THAT(out_.str(),
                HasSubstr("the nearest passing schedule (at the next access of the same "
                          "kind):\n  1. phase 1, CPU 0: before read 5 "));
    EXPECT_THAT(out_.str(), HasSubstr("written  " + smallest + "\n"));
    const ReadFailure read = read_failure_file(smallest);
    ASSERT_EQ(read.error, "");
    EXPECT_EQ(read.file.record.schedule, (Schedule{"sleep", 3, {move_at(4, Action::lap)}}));
    EXPECT_EQ(read.file.nearest_passing, (Schedule{"sleep", 3, {move_at(5, Action::lap)}}));
    EXPECT_EQ(read.file.settings.seed, 5u);
    // The last run is for the trace.
    EXPECT_TRUE(settings_.record_accesses);
}

TEST_F(CommandsTest, ShrinkSaysThatItDoesNotFailAnyMore) {
    EXPECT_EQ(shrink_command(save_explored(), {}, tools()), kExitFailed);
    EXPECT_THAT(out_.str(), HasSubstr("the case does not fail in this way any more (5 runs)\n"));
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/5.1.8.2-explored-sleep.smallest.json"));
}

TEST_F(CommandsTest, ShrinkOfACaseWithoutAScheduleNamesWhatExploresItsClause) {
    const std::string path = save(cases_[0], std::nullopt);
    EXPECT_EQ(shrink_command(path, {}, tools()), kExitUsage);
    EXPECT_EQ(error_.str(), "kmes-conformance: " + path +
                                ": the case 5.1.8.2-2/recheck is played as it is written and has "
                                "no schedule to make smaller; cases that explore its clause: "
                                "5.1.8.2/explored-sleep\n");
    EXPECT_EQ(runs_, 0);
}

TEST_F(CommandsTest, ShrinkOfWhatWasDrawnSaysThatNothingCanBeLeftOut) {
    const std::string path = save(cases_[1], Schedule{"sleep", 3, {}, true});
    EXPECT_EQ(shrink_command(path, {}, tools()), kExitUsage);
    EXPECT_THAT(error_.str(), HasSubstr(": its moves were drawn from seed 3, and did not fail "));
    EXPECT_EQ(runs_, 0);
    EXPECT_EQ(replay_command(path, {}, tools()), kExitClean);
    EXPECT_TRUE(settings_.schedule->drawn);
    EXPECT_THAT(out_.str(), HasSubstr("  moves as drawn from seed 3\n"));
}

TEST_F(CommandsTest, AnInterruptEndsEachWithoutAFile) {
    run_ = [this](const StageSettings& settings) {
        stop_.ask(SIGINT);
        return fail(settings.schedule);
    };
    const std::string path = save_explored();
    EXPECT_EQ(shrink_command(path, {}, tools()), 130);
    EXPECT_EQ(runs_, 1);
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/5.1.8.2-explored-sleep.smallest.json"));
    EXPECT_THAT(error_.str(), HasSubstr("kmes-conformance: interrupted; no file was written\n"));
    EXPECT_EQ(replay_command(path, {}, tools()), 130);
    EXPECT_THAT(error_.str(), HasSubstr("kmes-conformance: interrupted\n"));
}

}  // namespace
}  // namespace kmes::conformance
