// SPDX-License-Identifier: MIT
//
// A failure survives its file. A file from anybody is read or refused, without a crash.
#include "conformance/failure/failure_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "conformance/failure/judge_file.h"
#include "conformance/oracle/driver_findings.h"
#include "conformance/oracle/history_draw.h"
#include "conformance/oracle/record.h"
#include "conformance/report/json_extent.h"

namespace kmes::conformance {
namespace {

using simulation::Fault;
using simulation::Tape;
using simulation::World;

std::vector<std::uint32_t> tape_of(std::uint32_t seed, std::size_t length) {
    std::mt19937 random(seed);
    std::vector<std::uint32_t> tape(length);
    for (std::uint32_t& choice : tape) choice = random() >> 12;
    return tape;
}

Timeline some_timeline() {
    std::vector<TimelineStep> steps(2);
    steps[0].text = "event 1 is published";
    steps[0].cpu = 0;
    steps[0].state = BufferState{1, 2, 3, 4, 5, 1, true};
    steps[1].kind = StepKind::access;
    steps[1].thread = 2;
    steps[1].text = "reads write_pos: 1480";
    steps[1].clause = "5.1.8.1 step 1";
    steps[1].instruction = "mov rax, [rdi+0x40]";
    steps[1].source = "consumer.c:120";
    steps[1].sequence = 7;
    steps[1].decisive = true;
    return Timeline::from(steps, 17);
}

Schedule some_schedule() {
    return {"sleep",
            9,
            {{{1, 0, 64, 8, false, 2, 0}, Action::emit, 0},
             {{2, 1, 4100, 64, true, 1, 8}, Action::tear, 13},
             {{2, 1, 128, 4, false, 3, 0, PointKind::wait}, Action::emit, 30, 1},
             {{3, 0, 64, 8, false, 1, 0}, Action::reserve, 2, 0, Written::header},
             {{3, 0, 0, 0, false, 1, 0, PointKind::sleep}, Action::swap, 1}},
            true};
}

// A run of the simulated consumer, as the stage would record it.
FailureFile some_failure(Fault fault, std::uint32_t seed) {
    World world(tape_of(seed, 300), fault);
    world.run();
    FailureFile file;
    file.suite = "kmes-conformance 1";
    file.case_id = "contract/tail-again";  // as a World judges: without a clause
    file.level = Level::erratum;
    file.settings.testee = {"./consumer", "--cpu", std::string("\xff\x00 x", 4)};
    file.settings.cpus = 2;
    file.settings.seed = 0xffffffffffffffff;
    file.settings.timeout_scale = 2.5;
    file.settings.explore = {false, 7.25, true};
    file.settings.shared = true;
    file.settings.soak_seconds = 3;
    file.settings.stream = "some events";
    file.settings.device = "/dev/kmes";
    file.settings.layout = "D";
    file.settings.stepper = Stepper::watchpoints;
    file.settings.schedule = some_schedule();
    file.stepper = "guard pages";
    RunRecord& record = file.record;
    record.schedule = some_schedule();
    record.points = {{1, 0, 64, 8, false, 1, 0}, {1, 0, 64, 8, false, 2, 0}};
    record.history = world.history().log();
    record.report = world.report();
    record.judge_options.exited_with_zero = true;
    record.driver_findings = {wrong_exit_status(3)};
    record.findings = world.findings();
    record.findings.push_back(wrong_exit_status(3));
    file.clause = record.findings.front().clause;
    file.message = record.findings.front().message;
    record.timeline = some_timeline();
    record.standard_error = "warning: \xfe\nlast line";
    file.nearest_passing = some_schedule();
    file.nearest_passing->moves.pop_back();
    return file;
}

TEST(FailureFile, SaysTheSameWhenItIsReadAgain) {
    const FailureFile file = some_failure(Fault::flip_digest, 1);
    const std::string text = to_json(file);
    const ReadFailure read = failure_from_json(text);
    ASSERT_EQ(read.error, "");
    // The text contains every member, so writing what was read gives the same text.
    EXPECT_EQ(to_json(read.file), text);
    EXPECT_EQ(read.file.settings.testee, file.settings.testee);
    EXPECT_EQ(read.file.settings.seed, file.settings.seed);
    EXPECT_EQ(read.file.settings.timeout_scale, 2.5);
    EXPECT_EQ(read.file.settings.explore.seconds, 7.25);
    EXPECT_TRUE(read.file.settings.explore.deep);
    EXPECT_FALSE(read.file.settings.explore.on);
    EXPECT_EQ(read.file.settings.device, "/dev/kmes");
    EXPECT_EQ(read.file.settings.layout, "D");
    EXPECT_EQ(read.file.settings.stepper, Stepper::watchpoints);
    EXPECT_EQ(read.file.settings.schedule, some_schedule());
    EXPECT_EQ(read.file.nearest_passing, file.nearest_passing);
    EXPECT_EQ(read.file.record.points, file.record.points);
    EXPECT_EQ(read.file.record.report, file.record.report);
    EXPECT_EQ(read.file.record.standard_error, file.record.standard_error);
    EXPECT_EQ(read.file.record.timeline.steps(), file.record.timeline.steps());
    EXPECT_EQ(read.file.record.timeline.left_out(), 17u);
    EXPECT_EQ(read.file.level, Level::erratum);
    ASSERT_EQ(read.file.record.driver_findings.size(), 1u);
    EXPECT_TRUE(same_finding(read.file.record.driver_findings[0], wrong_exit_status(3)));
}

TEST(FailureFile, NumbersOfStepsStayBelowTheLargestNumber) {
    auto json = nlohmann::json::parse(to_json(some_failure(Fault::flip_digest, 1)));
    json["timeline"]["left_out"] = 0xffffffffffffffff;
    EXPECT_EQ(failure_from_json(json.dump()).error,
              "timeline.left_out is 18446744073709551615; expected a whole number from 0 to "
              "18446744073709541615");
}

TEST(FailureFile, AStepThatAShortTimelineDoesNotHaveIsNotFound) {
    Timeline timeline = some_timeline();
    EXPECT_EQ(timeline.find(2), &timeline.last());
    EXPECT_EQ(timeline.find(3), nullptr);
    EXPECT_EQ(timeline.find(19), nullptr);
    EXPECT_EQ(timeline.find(20), nullptr);
}

// Written by hand: other programs that read these files rely on the names.
TEST(FailureFile, HasTheMembersThatTheDocumentNames) {
    const auto json = nlohmann::json::parse(to_json(some_failure(Fault::flip_digest, 1)));
    EXPECT_EQ(json["kmes_failure"], 2);
    EXPECT_EQ(json["case"], "contract/tail-again");
    EXPECT_EQ(json["level"], "erratum");
    EXPECT_EQ(json["run"]["testee"][2]["hex"], "ff002078");
    EXPECT_EQ(json["run"]["seed"], 0xffffffffffffffff);
    EXPECT_EQ(json["schedule"]["scenario"], "sleep");
    EXPECT_EQ(json["schedule"]["moves"][1]["action"], "tear");
    EXPECT_EQ(json["schedule"]["moves"][1]["parameter"], 13);
    EXPECT_EQ(json["schedule"]["moves"][1]["split_bytes"], 8);
    EXPECT_FALSE(json["schedule"]["moves"][1].contains("kind"));
    EXPECT_EQ(json["schedule"]["moves"][2]["kind"], "wait");
    EXPECT_EQ(json["schedule"]["moves"][2]["further"], 1);
    EXPECT_FALSE(json["schedule"]["moves"][2].contains("written"));
    EXPECT_EQ(json["schedule"]["moves"][3]["written"], "header");
    EXPECT_EQ(json["schedule"]["drawn"], true);
    EXPECT_EQ(json["findings"].back()["by"], "driver");
    EXPECT_EQ(json["findings"].back()["code"], "wrong-exit-status");
    EXPECT_EQ(json["findings"][0]["by"], "oracle");
    EXPECT_EQ(json["standard_error"][0]["hex"], "7761726e696e673a20fe");
    EXPECT_EQ(json["standard_error"][1], "last line");
    EXPECT_EQ(json["timeline"]["steps"][1]["source"], "consumer.c:120");
    EXPECT_TRUE(json["history"]["complete"]);
}

// An event in flight used to be whole always, so old files do not mention it.
TEST(FailureFile, AnOldFileHasWholeEventsInFlight) {
    auto json = nlohmann::json::parse(to_json(some_failure(Fault::flip_digest, 1)));
    json["schedule"]["moves"][3].erase("written");
    json["history"]["operations"] = {{{"do", "reserve"}, {"cpu", 0}, {"bytes", 40}},
                                     {{"do", "batch_begin"}, {"cpu", 0}}};
    const ReadFailure read = failure_from_json(json.dump());
    ASSERT_EQ(read.error, "");
    EXPECT_EQ(read.file.record.schedule->moves[3].written, Written::whole);
    for (const LoggedOperation& operation : read.file.record.history.operations)
        EXPECT_EQ(operation.written, Written::whole);
}

TEST(FailureFile, WhatIsInFlightIsReadAgain) {
    FailureFile file = some_failure(Fault::flip_digest, 1);
    History history(file.record.history.settings);
    history.reserve(0, 40, Written::half);
    file.record.history = history.log();
    LoggedOperation begun;
    begun.kind = OperationKind::batch_begin;
    begun.written = Written::nothing;
    begun.written_event = 2;
    file.record.history.operations.push_back(begun);
    const ReadFailure read = failure_from_json(to_json(file));
    ASSERT_EQ(read.error, "");
    const auto& operations = read.file.record.history.operations;
    ASSERT_EQ(operations.size(), 2u);
    EXPECT_EQ(operations[0].written, Written::half);
    EXPECT_EQ(operations[1].written, Written::nothing);
    EXPECT_EQ(operations[1].written_event, 2u);
}

TEST(FailureFile, AnyHistoryIsTheSameHistoryAfterwards) {
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
        const History history = simulation::draw_history(Tape(tape_of(seed, 300)));
        FailureFile file;
        file.case_id = "a/b";
        file.record.history = history.log();
        const ReadFailure read = failure_from_json(to_json(file));
        ASSERT_EQ(read.error, "") << seed;
        ASSERT_EQ(simulation::dump(history_from(read.file.record.history)),
                  simulation::dump(history))
            << seed;
    }
}

TEST(FailureFile, AnyReportIsJudgedTheSameAfterwards) {
    int with_findings = 0;
    for (std::uint32_t seed = 0; seed < 200; ++seed) {
        const FailureFile file = some_failure(static_cast<Fault>(seed % 10), seed);
        const ReadFailure read = failure_from_json(to_json(file));
        ASSERT_EQ(read.error, "") << seed;
        const JudgedAgain judged = judge_record(read.file.record);
        ASSERT_EQ(judged.error, "") << seed;
        EXPECT_TRUE(judged.equal) << seed;
        EXPECT_EQ(judged.driver.size(), 1u);
        with_findings += judged.oracle.empty() ? 0 : 1;
    }
    EXPECT_GT(with_findings, 20);
}

TEST(FailureFile, AReportThatWasChangedIsJudgedOtherwise) {
    FailureFile file = some_failure(Fault::none, 3);
    ASSERT_TRUE(judge_record(file.record).equal);
    file.record.report += "X\n";
    const JudgedAgain judged = judge_record(file.record);
    EXPECT_EQ(judged.error, "");
    EXPECT_FALSE(judged.equal);
    ASSERT_FALSE(judged.oracle.empty());
    EXPECT_EQ(judged.oracle.front().code, FindingCode::malformed_record);
}

TEST(FailureFile, WhatIsNotKeptCannotBeJudged) {
    FailureFile file = some_failure(Fault::none, 3);
    file.record.history.complete = false;
    const ReadFailure read = failure_from_json(to_json(file));
    ASSERT_EQ(read.error, "");
    EXPECT_THAT(judge_record(read.file.record).error, testing::HasSubstr("has no history"));

    file = some_failure(Fault::none, 3);
    file.record.report_left_out = 5;
    EXPECT_THAT(judge_record(failure_from_json(to_json(file)).file.record).error,
                testing::HasSubstr("5 bytes of its report are left out"));
}

TEST(FailureFile, AFloodIsCutAndThatIsSaid) {
    FailureFile file = some_failure(Fault::none, 3);
    file.record.report.assign(std::size_t{17} << 20, '#');
    const ReadFailure read = failure_from_json(to_json(file));
    ASSERT_EQ(read.error, "");
    EXPECT_EQ(read.file.record.report.size(), std::size_t{16} << 20);
    EXPECT_EQ(read.file.record.report_left_out, std::uint64_t{1} << 20);
}

TEST(FailureFile, AFloodOfLinesIsCutAndThatIsSaid) {
    constexpr std::size_t kMostLines = 2'000'000;
    FailureFile file = some_failure(Fault::none, 3);
    file.record.report.assign(kMostLines - 1, '\n');
    ReadFailure read = failure_from_json(to_json(file));
    ASSERT_EQ(read.error, "");
    EXPECT_EQ(read.file.record.report, file.record.report);
    EXPECT_EQ(read.file.record.report_left_out, 0u);

    file.record.report += "\nx";
    EXPECT_THAT(to_json(file), testing::HasSubstr("\"left_out_bytes\": 2,"));
}

TEST(FailureFile, AScheduleOfTooManyMovesIsCutAndThatIsSaid) {
    FailureFile file = some_failure(Fault::none, 3);
    file.record.schedule = Schedule{"sleep", 1, std::vector<Move>(10'003)};
    const ReadFailure read = failure_from_json(to_json(file));
    ASSERT_EQ(read.error, "");
    EXPECT_EQ(read.file.record.schedule->moves.size(), 10'000u);
    EXPECT_EQ(read.file.record.schedule->left_out, 3u);
    EXPECT_EQ(to_json(read.file), to_json(file));
}

TEST(FailureFile, ALongCommandLineIsReadAgain) {
    FailureFile file = some_failure(Fault::none, 3);
    file.settings.testee.assign(5000, "x");
    const ReadFailure read = failure_from_json(to_json(file));
    ASSERT_EQ(read.error, "");
    EXPECT_EQ(read.file.settings.testee, file.settings.testee);
}

// Each operation has twelve values here, and each line of the report two.
TEST(FailureFile, AHistoryOfTooManyValuesIsLeftOut) {
    FailureFile file = some_failure(Fault::none, 3);
    HistoryLog& log = file.record.history;
    LoggedOperation emitted;
    emitted.style = EmitStyle::call;
    emitted.origin = 1;
    emitted.type = emitted.extra_header = log.keep("\xff");
    emitted.payload.generated = true;
    log.operations.assign(HistoryLog::kMaximumOperations, emitted);
    for (int i = 0; i < 1'990'000; ++i) file.record.report += "\xff\n";
    const std::string text = to_json(file);
    EXPECT_LE(json_extent(text).values, kMaximumFailureFileValues);
    EXPECT_THAT(text, testing::HasSubstr("\"complete\": false"));
}

TEST(FailureFile, AHistoryThatIsTooLongForAFileIsLeftOut) {
    FailureFile file = some_failure(Fault::none, 3);
    HistoryLog& log = file.record.history;
    LoggedOperation large;
    large.type = log.keep(std::string(65535, '\xff'));
    log.operations.assign(2100, large);
    const std::string text = to_json(file);
    EXPECT_LE(text.size(), kMaximumFailureFileBytes);
    const ReadFailure read = failure_from_json(text);
    ASSERT_EQ(read.error, "");
    EXPECT_FALSE(read.file.record.history.complete);
}

// -- What is refused, and with which message --

std::string error_after(const std::function<void(nlohmann::json&)>& change) {
    auto json = nlohmann::json::parse(to_json(some_failure(Fault::flip_digest, 1)));
    change(json);
    return failure_from_json(json.dump()).error;
}

TEST(FailureFile, NamesTheFieldAndWhatIsRight) {
    using Json = nlohmann::json;
    EXPECT_EQ(error_after([](Json& json) { json["kmes_failure"] = 3; }),
              "kmes_failure is 3; expected 2, the only format that this suite knows");
    EXPECT_EQ(error_after([](Json& json) { json.erase("case"); }), "case is missing");
    EXPECT_EQ(error_after([](Json& json) { json["run"].erase("cpus"); }), "run.cpus is missing");
    EXPECT_EQ(error_after([](Json& json) { json["run"]["cpus"] = "4"; }),
              "run.cpus is \"4\"; expected a whole number from 1 to 1024");
    EXPECT_EQ(error_after([](Json& json) { json["run"]["cpus"] = -1; }),
              "run.cpus is -1; expected a whole number from 1 to 1024");
    EXPECT_EQ(error_after([](Json& json) { json["level"] = "may"; }),
              "level is \"may\"; expected must, should, erratum or robust");
    EXPECT_EQ(error_after([](Json& json) { json["extra"] = 1; }).substr(0, 53),
              "the file has the unknown member \"extra\"; expected kme");
    EXPECT_EQ(error_after([](Json& json) {
                  json["schedule"]["moves"][1]["action"] = "jump";
              }).substr(0, 57),
              "schedule.moves[1].action is \"jump\"; expected one of nothi");
    EXPECT_EQ(
        error_after([](Json& json) { json["history"]["operations"][0]["do"] = 7; }).substr(0, 50),
        "history.operations[0].do is 7; expected one of emi");
    EXPECT_EQ(error_after([](Json& json) { json["run"]["testee"][2]["hex"] = "fg"; }),
              "run.testee[2].hex is \"fg\"; expected an even number of lower-case hex digits, at "
              "most 262144");
    EXPECT_EQ(error_after([](Json& json) { json["judge"] = Json::array(); }),
              "judge is a list of 0 items; expected an object");
    EXPECT_EQ(error_after([](Json& json) { json["timeline"]["steps"] = "x"; }),
              "timeline.steps is \"x\"; expected a list of at most 10000 items");
    EXPECT_EQ(
        error_after([](Json& json) { json["history"]["kept_payload_bytes"] = 134'217'729; }),
        "history.kept_payload_bytes is 134217729; expected a whole number from 0 to 134217728");
}

TEST(FailureFile, SaysWhereItIsNoJson) {
    EXPECT_EQ(
        failure_from_json("").error,
        "the file is no JSON from line 1 on (byte 0 of 0); expected a file as --save writes it");
    EXPECT_EQ(
        failure_from_json("{\n\"kmes_failure\": 2,\n!}").error,
        "the file is no JSON from line 3 on (byte 22 of 23); expected a file as --save writes it");
    EXPECT_EQ(failure_from_json("[]").error, "the file is a list of 0 items; expected an object");
}

TEST(FailureFile, LimitsTheMemoryOfAFile) {
    for (const std::string& after : {std::string(), std::string(200'000, ']')}) {
        EXPECT_EQ(failure_from_json(std::string(200'000, '[') + after).error,
                  "the file has lists and objects nested in 200000 levels; at most 16 are read");
    }
    std::string text = "[";
    for (std::size_t i = 0; i < kMaximumFailureFileValues; ++i) text += "0,";
    EXPECT_EQ(failure_from_json(text).error,
              "the file has 10000002 values; at most 10000000 are read");
}

TEST(FailureFile, ALogThatNoDriverMadeIsRefusedByTheJudge) {
    FailureFile file = some_failure(Fault::none, 3);
    LoggedOperation wrong;
    wrong.kind = OperationKind::nudge;
    wrong.buffer = 77;
    file.record.history.operations.insert(file.record.history.operations.begin(), wrong);
    EXPECT_EQ(judge_record(failure_from_json(to_json(file)).file.record).error,
              "history: operation 0 (nudge): history: there is no such buffer");
}

// Every mutant is read, or refused with one line. The judge accepts whatever was read.
void expect_survives(const std::string& text) {
    const ReadFailure read = failure_from_json(text);
    if (!read.error.empty()) {
        EXPECT_EQ(read.error.find('\n'), std::string::npos) << read.error;
        EXPECT_LT(read.error.size(), 2000u);
        return;
    }
    (void)judge_record(read.file.record);
    EXPECT_EQ(failure_from_json(to_json(read.file)).error, "");
}

TEST(FailureFile, NoTruncatedFileIsTaken) {
    const std::string text = to_json(some_failure(Fault::flip_digest, 1));
    std::mt19937 random(1);
    for (int i = 0; i < 300; ++i) {
        const std::size_t length = random() % (text.find_last_of('}'));
        EXPECT_NE(failure_from_json(text.substr(0, length)).error, "") << length;
    }
}

TEST(FailureFile, NoMutatedFileIsCrashedOn) {
    const std::string original = to_json(some_failure(Fault::wrong_position, 5));
    std::mt19937 random(2);
    for (int i = 0; i < 400; ++i) {
        std::string text = original;
        for (std::uint32_t changes = 1 + random() % 4; changes > 0; --changes) {
            const std::size_t at = random() % text.size();
            switch (random() % 4) {
                case 0:
                    text[at] = static_cast<char>(random());
                    break;
                case 1:
                    text[at] = "0123456789{}[],:\"truefalsnl-.e"[random() % 30];
                    break;
                case 2:
                    text.erase(at, 1 + random() % 30);
                    break;
                case 3:
                    text.insert(at, text.substr(random() % text.size(), random() % 60));
                    break;
            }
        }
        expect_survives(text);
    }
}

// Replaces one value somewhere by another valid JSON value.
void mutate_value(nlohmann::json& json, std::mt19937& random) {
    nlohmann::json* at = &json;
    while (at->is_structured() && !at->empty() && random() % 8 != 0) {
        auto member = at->begin();
        std::advance(member, random() % at->size());
        at = &*member;
    }
    static const std::vector<nlohmann::json> kValues = {nullptr,
                                                        true,
                                                        0,
                                                        1,
                                                        2,
                                                        255,
                                                        4096,
                                                        -1,
                                                        0xffffffffffffffffull,
                                                        1e300,
                                                        "",
                                                        "emit",
                                                        "t",
                                                        "swap",
                                                        "checkpoint_idle",
                                                        "outrun",
                                                        nlohmann::json::array(),
                                                        nlohmann::json::object(),
                                                        {{"hex", "00ff"}},
                                                        {{"seed", 1}, {"length", 70}},
                                                        {{"seed", 1}, {"length", 4294967295u}}};
    *at = kValues[random() % kValues.size()];
}

TEST(FailureFile, NoChangedValueIsCrashedOn) {
    const auto original = nlohmann::json::parse(to_json(some_failure(Fault::skip_one, 9)));
    std::mt19937 random(3);
    int taken = 0;
    for (int i = 0; i < 600; ++i) {
        nlohmann::json json = original;
        mutate_value(json["history"], random);
        const std::string text = json.dump();
        taken += failure_from_json(text).error.empty() ? 1 : 0;
        expect_survives(text);
    }
    EXPECT_GT(taken, 50) << "the judge has seen too few of them";
    for (int i = 0; i < 200; ++i) {
        nlohmann::json json = original;
        mutate_value(json, random);
        expect_survives(json.dump());
    }
}

// -- Files and folders --

class FailureFolderTest : public testing::Test {
  protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "/failure-XXXXXX";
        ASSERT_NE(::mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }

    std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_))
            if (entry.is_regular_file()) all.push_back(entry.path().filename());
        std::sort(all.begin(), all.end());
        return all;
    }

    std::string folder_;
};

TEST_F(FailureFolderTest, MakesTheFolderAndNamesEachFileOfItsOwn) {
    const FailureFile file = some_failure(Fault::flip_digest, 1);
    FailureFolder folder;
    ASSERT_EQ(folder.open(folder_ + "/a/b/"), "");
    EXPECT_TRUE(names().empty());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(folder.save(file).error, "");
    EXPECT_THAT(names(),
                testing::ElementsAre("contract-tail-again.2.json", "contract-tail-again.3.json",
                                     "contract-tail-again.json"));
    const ReadFailure read = read_failure_file(folder_ + "/a/b/contract-tail-again.2.json");
    EXPECT_EQ(read.error, "");
    EXPECT_EQ(to_json(read.file), to_json(file));
}

TEST_F(FailureFolderTest, LeavesNoFolderOfItsOwnIfNothingWasSaved) {
    std::filesystem::create_directory(folder_ + "/there");
    {
        EXPECT_EQ(FailureFolder().open(folder_ + "/there/a/b"), "");
    }
    EXPECT_TRUE(std::filesystem::exists(folder_ + "/there"));
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/there/a"));
    {
        FailureFolder folder;
        EXPECT_EQ(folder.open(folder_ + "/there/a/b"), "");
        EXPECT_EQ(folder.save(some_failure(Fault::flip_digest, 1)).error, "");
    }
    EXPECT_TRUE(std::filesystem::exists(folder_ + "/there/a/b"));
}

TEST_F(FailureFolderTest, SaysWhyAFolderWillNotDo) {
    FailureFolder folder;
    EXPECT_EQ(folder.open(""), "the name of the folder of --save is empty");
    std::ofstream(folder_ + "/file") << "x";
    EXPECT_EQ(folder.open(folder_ + "/file"),
              "the folder \"" + folder_ + "/file\" of --save cannot be made: File exists");
    EXPECT_EQ(folder.open(folder_ + "/file/sub"),
              "the folder \"" + folder_ + "/file\" of --save cannot be made: File exists");
}

TEST_F(FailureFolderTest, SaysWhyAFileCannotBeRead) {
    EXPECT_EQ(read_failure_file(folder_ + "/none").error,
              folder_ + "/none: No such file or directory");
    EXPECT_EQ(read_failure_file(folder_).error,
              folder_ + ": this is no regular file; expected one");
    std::ofstream(folder_ + "/x") << "{}";
    EXPECT_EQ(read_failure_file(folder_ + "/x").error, folder_ + "/x: kmes_failure is missing");
    std::ofstream(folder_ + "/report") << R"({"schema": 2, "cases": []})";
    EXPECT_EQ(read_failure_file(folder_ + "/report").error,
              folder_ +
                  "/report: this is a JSON report; expected a failure file, as --save DIR "
                  "makes it");
}

TEST(FailureFileName, IsAPlainNameWhateverTheCase) {
    EXPECT_EQ(failure_file_name("5.1.8.2/lost-wake-up"), "5.1.8.2-lost-wake-up.json");
    EXPECT_EQ(failure_file_name("../../x"), "case..-..-x.json");
    EXPECT_EQ(failure_file_name(""), "case.json");
}

}  // namespace
}  // namespace kmes::conformance
