// SPDX-License-Identifier: MIT
//
// Rows on real testees. The schedule of a row's failure has one play, which fails again alone and
// can be shrunk. A correct consumer passes.
#include "conformance/play/row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "conformance/failure/shrink.h"
#include "conformance/model/run_record.h"
#include "conformance/monitors/run.h"
#include "conformance/play/row_schedule.h"
#include "conformance/play/sleep_watch.h"

namespace kmes::conformance {
namespace {

constexpr const char* kTestees = "conformance/testees/";

// The failure needs neither the events before the walk nor the second event.
const Row kRows[] = {
    {{"5.1.8.2/t-event", Level::must, "5.1.8.2", "t", "d", "e"},
     {Asleep{}, Times{3, {Emit{2, 80}, Asleep{}}}, BeforeEachAccess{{Emit{1, 70}, Emit{2, 90}}}},
     kOneCpu},
    {{"5.1.8.1-5/t-read", Level::must, "5.1.8.1-5", "t", "d", "e"},
     {Place{}, UnderRead{.wake = {Emit{1, 8000}}, .actions = {Lap{}}}, Emit{}, Asleep{}},
     kOneCpu},
    {{"5.1.8.3/t-many", Level::must, "5.1.8.3", "t", "d", "e"},
     {Asleep{}, OnEachCpu{{BeforeEachAccess{.actions = {Resize{}, Emit{}}, .last = 4}}},
      BeforeAccessTo{.wake = {Emit{}}, .actions = {Emit{}}, .accesses = {1, 3}},
      InNextBuffer{.actions = {Emit{}}, .last = 2}, HoldAt{.wake = {Emit{}}, .meanwhile = {Emit{}}},
      HoldAt{.wake = {Emit{}},
             .meanwhile = {OnCpu{1, {Emit{}}}, Hold{}, Emit{}},
             .place = AccessPlace::after,
             .last = 3,
             .before = {Asleep{}}},
      HoldAt{.wake = {AtOnce{{InTurn{{{Swap{usual(2)}}, {Swap{usual()}}}}, Emit{}}}},
             .meanwhile = {OnCpu{1, {Swap{}}}},
             .place = AccessPlace::in_next_buffer,
             .last = 3,
             .before = {Asleep{}}},
      ActAt{.place = "before access {}",
            .play_at = at_access_before_a_sleep({"E2", "the consumer sleeps on an event"}),
            .wake = {Emit{}},
            .actions = {Emit{}},
            .last = 3},
      BeforeEachAccess{.actions = {FutexWake{}}, .spurious_wakes = 3},
      BeforeEachAccess{.actions = {Emit{}}, .after = Disturbance::lapped}, Asleep{}},
     {.cpus = 2, .capacity = kUnusualCapacity}},
    {{"5.1.8.1/t-none", Level::must, "5.1.8.1", "t", "d", "e"},
     {Asleep{}, HoldAt{.access = 1000, .wake = {Emit{}}, .meanwhile = {Emit{}}}},
     kOneCpu},
    // Pages with more accesses than a walk has.
    {{"5.1.8.1/t-far", Level::must, "5.1.8.1", "t", "d", "e"},
     {Asleep{}, BeforeAccessTo{.wake = {Emit{1, 8000}}, .actions = {}, .pages = 20}},
     kOneCpu},
};

class RowTest : public testing::Test {
  protected:
    RowTest() {
        settings_.stop = &stop_;
        const char* scale = std::getenv("KMES_TIMEOUT_SCALE");
        if (scale != nullptr) settings_.timeout_scale = std::atof(scale);
    }

    CaseOutcome play(const std::string& testee, std::size_t row,
                     std::optional<Schedule> schedule = std::nullopt) {
        settings_.testee = {kTestees + testee};
        settings_.schedule = std::move(schedule);
        return run_on_stage(cases_.at(row), settings_);
    }

    static std::size_t accesses(const Schedule& schedule) {
        std::size_t count = 0;
        for (const Move& move : schedule.moves)
            count += move.point.kind == PointKind::row_step ? 0 : 1;
        return count;
    }

    StopFlag stop_;
    StageSettings settings_;
    std::vector<Case> cases_ = cases_of(kRows);
};

TEST_F(RowTest, AFailureIsOfOnePlayWhichFailsAgainAlone) {
    const CaseOutcome outcome = play("broken_counter-after-the-recheck", 0);
    ASSERT_EQ(outcome.verdict, Verdict::fail) << outcome.message;
    ASSERT_NE(outcome.record, nullptr);
    ASSERT_TRUE(outcome.record->schedule);
    const Schedule& schedule = *outcome.record->schedule;
    EXPECT_EQ(accesses(schedule), 1u);
    EXPECT_EQ(cases_[0].schedule_problem(schedule), "");
    const CaseOutcome again = play("broken_counter-after-the-recheck", 0, schedule);
    EXPECT_EQ(again.verdict, Verdict::fail) << again.message;
    EXPECT_EQ(again.clause, outcome.clause);
    EXPECT_EQ(play("c_consumer", 0, schedule).verdict, Verdict::pass);
}

TEST_F(RowTest, AFailureOfTheJudgeIsOfThePlayOfItsEvent) {
    const CaseOutcome outcome = play("broken_no-tail-recheck", 1);
    ASSERT_EQ(outcome.verdict, Verdict::fail) << outcome.message;
    ASSERT_TRUE(outcome.record && outcome.record->schedule);
    EXPECT_EQ(accesses(*outcome.record->schedule), 1u);
}

TEST_F(RowTest, AFailureIsMadeSmaller) {
    const std::string testee = "broken_counter-after-the-recheck";
    const CaseOutcome outcome = play(testee, 0);
    ASSERT_TRUE(outcome.record && outcome.record->schedule) << outcome.message;
    const Schedule failing = *outcome.record->schedule;
    const auto trial = [&](const Schedule& schedule) {
        const CaseOutcome played = play(testee, 0, schedule);
        if (played.verdict == Verdict::pass) return Trial::passes;
        return played.clause == outcome.clause ? Trial::fails : Trial::other;
    };
    const Shrunk shrunk = shrink(failing, trial, {});
    ASSERT_TRUE(shrunk.fails);
    EXPECT_TRUE(shrunk.whole);
    // One action, and the access before which it comes.
    EXPECT_EQ(shrunk.smallest.moves.size(), 2u);
    EXPECT_EQ(accesses(shrunk.smallest), 1u);
    ASSERT_TRUE(shrunk.nearest_passing);
    EXPECT_EQ(play(testee, 0, shrunk.nearest_passing).verdict, Verdict::pass);
}

TEST_F(RowTest, EachWalkCanBePlayedAlone) {
    for (std::size_t row = 0; row < cases_.size(); ++row) {
        const CaseOutcome all = play("c_consumer", row);
        EXPECT_EQ(all.verdict, Verdict::pass) << cases_[row].id << ": " << all.message;
    }
    const RowSteps steps(kRows[2].setup.before_start, kRows[2].steps);
    for (std::uint32_t number = 1; number <= steps.count(); ++number) {
        if (role_of(steps.step(number)) != StepRole::walk) continue;
        const AccessPoint point = point_of(number, 0, {});
        const CaseOutcome one = play("c_consumer", 2, schedule_of(steps, 1, {&point, 1}));
        EXPECT_EQ(one.verdict, Verdict::pass) << "step " << number << ": " << one.message;
    }
}

TEST_F(RowTest, APassReportsThatNoActionTookPlace) {
    for (const std::size_t row : {std::size_t{0}, std::size_t{2}}) {
        const CaseOutcome all = play("c_consumer", row);
        EXPECT_EQ(all.message, "") << cases_[row].id;
    }
    const CaseOutcome none = play("c_consumer", 3);
    EXPECT_EQ(none.verdict, Verdict::pass);
    EXPECT_THAT(none.message, testing::HasSubstr("no access before which the case acts"));
}

// The C example reads 8 bytes at a time, and a walk has 159 accesses at most.
TEST_F(RowTest, APassReportsAWalkThatEndedEarly) {
    settings_.timeout_scale = 100;  // no limit of time ends the walk
    const CaseOutcome outcome = play("c_consumer", 4);
    EXPECT_EQ(outcome.verdict, Verdict::pass) << outcome.message;
    EXPECT_THAT(outcome.message, testing::HasSubstr("ended at access 159"));
}

// Without the steps that wake it, the consumer makes no access.
TEST_F(RowTest, AScheduleWithoutStepsPlaysTheRest) {
    const Schedule none{std::string(kRowScenario), 1, {}};
    for (std::size_t row = 0; row < cases_.size(); ++row) {
        const CaseOutcome outcome = play("c_consumer", row, none);
        EXPECT_EQ(outcome.verdict, Verdict::pass) << cases_[row].id << ": " << outcome.message;
    }
}

TEST_F(RowTest, AScheduleOfAnotherCaseIsAnErrorOfTheSuite) {
    const Schedule other{"wake", 1, {}};
    const CaseOutcome outcome = play("c_consumer", 0, other);
    EXPECT_EQ(outcome.verdict, Verdict::suite_error);
    EXPECT_NE(outcome.message.find("\"wake\""), std::string::npos) << outcome.message;
}

}  // namespace
}  // namespace kmes::conformance
