// SPDX-License-Identifier: MIT
//
// The numbers, descriptions and schedules of a row, without a stage.
#include "conformance/play/row_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/play/row_player.h"
#include "conformance/play/step_text.h"

namespace kmes::conformance {
namespace {

using testing::HasSubstr;

// Numbers:   1: Asleep; 2: Times; 3: Emit; 4: OnEachCpu; 5: Lap; 6: the walk; 7: Emit; 8: Resize;
// 9: the second walk; 10: FutexWake; 11: UnderRead; 12: Emit; 13: Lap.
const Steps kNothing;
const Steps kSteps{
    Asleep{},
    Times{8, {Emit{2, 70}}},
    OnEachCpu{{Lap{9000}}},
    BeforeEachAccess{.actions = {Emit{1, 70}, Resize{current(), PositionRule::shift, 1000}}},
    BeforeEachAccess{.actions = {FutexWake{}}, .spurious_wakes = 20},
    UnderRead{.at = 4096, .wake = {Emit{}}, .actions = {Lap{}}},
};
constexpr std::uint32_t kFirstWalk = 6;
constexpr std::uint32_t kSecondWalk = 9;
constexpr std::uint32_t kUnderRead = 11;

AccessPoint play(std::uint32_t walk, std::uint64_t access, Counted counted = Counted::all) {
    return point_of(walk, 0, {counted, access});
}

class RowScheduleTest : public testing::Test {
  protected:
    Schedule schedule(std::vector<AccessPoint> plays) { return schedule_of(row_, 7, plays); }

    RowSteps row_{kNothing, kSteps};
};

TEST(AmountTest, IsRelativeToACapacity) {
    EXPECT_EQ(Amount(70).in(65536), 70u);
    EXPECT_EQ(current(1, 8).in(65536), 8192u);
    EXPECT_EQ((usual(2) + 16).in(65536), 131088u);
    EXPECT_EQ((current() - 100).in(65536), 65436u);
}

TEST(AmountTest, HasWords) {
    EXPECT_EQ(describe(Amount(70)), "70");
    EXPECT_EQ(describe(current(1, 8)), "1/8 of the capacity");
    EXPECT_EQ(describe(current() - 100), "the capacity - 100");
    EXPECT_EQ(describe(usual(2) + 16), "2 x the capacity of the command line + 16");
}

TEST_F(RowScheduleTest, NumbersTheStepsAsTheyAreWritten) {
    EXPECT_EQ(row_.count(), 13u);
    EXPECT_EQ(row_.number_of(*kSteps.begin()), 1u);
    EXPECT_EQ(role_of(row_.step(1)), StepRole::structure);
    EXPECT_EQ(role_of(row_.step(2)), StepRole::producer);
    EXPECT_EQ(role_of(row_.step(4)), StepRole::structure);
    EXPECT_EQ(role_of(row_.step(kFirstWalk)), StepRole::walk);
    EXPECT_EQ(role_of(row_.step(kUnderRead)), StepRole::walk);
    const Step other = Emit{};
    EXPECT_EQ(row_.number_of(other), 0u);
}

// A walk inside of Times is played again and again.
TEST_F(RowScheduleTest, AScheduleHasAPlayOfARepeatedWalkOnce) {
    const AccessPoint first = play(kSecondWalk, 5);
    const AccessPoint second = play(kSecondWalk, 6);
    EXPECT_EQ(schedule({first, second, first}), schedule({first, second}));
}

TEST_F(RowScheduleTest, AScheduleHasEachProducerStepAndThePlays) {
    const Schedule made = schedule({play(kSecondWalk, 5)});
    EXPECT_EQ(made.scenario, "row");
    EXPECT_EQ(made.seed, 7u);
    std::vector<std::uint32_t> steps;
    for (const Move& move : made.moves) steps.push_back(move.point.phase);
    EXPECT_EQ(steps, (std::vector<std::uint32_t>{2, 3, 5, 7, 8, 10, 12, 13, kSecondWalk}));
    EXPECT_EQ(made.moves.front().parameter, 8u);  // Times
    EXPECT_EQ(made.moves.back().parameter, 19u);  // spurious wakes before the last one
    EXPECT_EQ(problem_of(made, row_), "");
}

TEST_F(RowScheduleTest, WithoutAScheduleAllIsPlayed) {
    const RowChoice choice(row_, nullptr);
    EXPECT_TRUE(choice.is_whole());
    EXPECT_TRUE(choice.plays(row_.step(3)));
    EXPECT_EQ(choice.count(row_.step(2), 8), 8u);
    EXPECT_FALSE(choice.accesses(row_.step(kFirstWalk), 0));
}

TEST_F(RowScheduleTest, AScheduleChoosesStepsCountsAndAccesses) {
    Schedule made = schedule({play(kFirstWalk, 4), play(kFirstWalk, 9, Counted::first_of_each)});
    made.moves.erase(made.moves.begin() + 1);  // step 3
    made.moves.front().parameter = 2;
    const RowChoice choice(row_, &made);
    EXPECT_TRUE(choice.plays(row_.step(1)));
    EXPECT_TRUE(choice.plays(row_.step(2)));
    EXPECT_FALSE(choice.plays(row_.step(3)));
    const Step of_the_player = Emit{};
    EXPECT_TRUE(choice.plays(of_the_player));
    EXPECT_EQ(choice.count(row_.step(2), 8), 2u);
    EXPECT_EQ(choice.count(row_.step(5), 1), 1u);  // has no count
    EXPECT_EQ(choice.accesses(row_.step(kFirstWalk), 0),
              (std::vector<AccessNumber>{{Counted::all, 4}, {Counted::first_of_each, 9}}));
    EXPECT_TRUE(choice.accesses(row_.step(kFirstWalk), 1)->empty());
    EXPECT_TRUE(choice.accesses(row_.step(kSecondWalk), 0)->empty());
}

// Whatever a file contains gets one line that names the move.
TEST_F(RowScheduleTest, AForeignScheduleIsRefused) {
    const Schedule right = schedule({play(kFirstWalk, 4)});
    const auto problem = [&](const auto& change) {
        Schedule wrong = right;
        change(wrong.moves.back());
        return problem_of(wrong, row_);
    };
    EXPECT_EQ(problem([](Move& move) { move.point.phase = 14; }),
              "move 9 has step (phase) 14; expected a step of this row, 1 to 13");
    EXPECT_EQ(problem([](Move& move) { move.point.phase = 0; }),
              "move 9 has step (phase) 0; expected a step of this row, 1 to 13");
    EXPECT_EQ(problem([](Move& move) { move.point.phase = 2; }),
              "move 9 has step (phase) 2, which is no walk of this row");
    EXPECT_EQ(problem([](Move& move) { move.point.kind = PointKind::row_step; }),
              "move 9 has step (phase) 6, which is no producer step of this row");
    EXPECT_THAT(problem([](Move& move) { move.point.kind = PointKind::access; }),
                HasSubstr("move 9 is of an explored case"));
    EXPECT_THAT(problem([](Move& move) { move.point.occurrence = 0; }),
                HasSubstr("has occurrence 0; expected an access of this walk, 1 to 63"));
    EXPECT_THAT(problem([](Move& move) { move.point.occurrence = UINT64_MAX; }),
                HasSubstr("expected an access of this walk, 1 to 63"));
    EXPECT_THAT(problem([](Move& move) { move.parameter = 1; }),
                HasSubstr("has parameter 1; expected at most 0, as the row has"));
    EXPECT_THAT(problem([](Move& move) { move.action = Action::lap; }),
                HasSubstr("has an action of its own"));
    EXPECT_THAT(
        problem([](Move& move) { move.point = play(kUnderRead, 1, Counted::first_of_each); }),
        HasSubstr("this walk counts every access"));
    Schedule explored = right;
    explored.scenario = "wake";
    EXPECT_EQ(problem_of(explored, row_), "its scenario is \"wake\"; expected \"row\"");
    Schedule drawn = right;
    drawn.drawn = true;
    EXPECT_THAT(problem_of(drawn, row_), HasSubstr("drawn"));
    Schedule many = right;
    many.moves.front().parameter = UINT64_MAX;
    EXPECT_THAT(problem_of(many, row_), HasSubstr("move 1 has parameter"));
}

TEST_F(RowScheduleTest, AMoveHasWords) {
    const Schedule made = schedule({play(kFirstWalk, 4), play(kSecondWalk, 2)});
    EXPECT_EQ(describe(made.moves[0], row_), "step 2: play the next steps 8 times");
    EXPECT_EQ(describe(made.moves[1], row_), "step 3: emit 2 events of 70 bytes");
    EXPECT_EQ(describe(made.moves[4], row_),
              "step 8: resize all buffers to the capacity bytes, with other positions");
    EXPECT_EQ(describe(made.moves[8], row_),
              "step 6, CPU 0: the actions before access 4 to the metadata page, after a wake");
    EXPECT_EQ(describe(made.moves[9], row_),
              "step 9, CPU 0: the actions before access 2 to the metadata page, after 20 spurious "
              "wakes");
    Move foreign = made.moves[0];
    foreign.point.phase = 99;
    EXPECT_EQ(describe(foreign, row_), "step 99");
}

TEST(PlayOfTest, IsTheLastPlayThatBeganBeforeTheFinding) {
    const std::vector<RowPlay> plays{{{}, 10, {5, 1}}, {{}, 20, {8, 1}}, {{}, 30, {9, 4}}};
    Finding finding;
    EXPECT_EQ(play_of(finding, plays), 2u);
    finding.line = 25;
    EXPECT_EQ(play_of(finding, plays), 1u);
    finding.line = 3;
    EXPECT_EQ(play_of(finding, plays), 0u);
    finding.line = 0;
    finding.cpu = 0;
    finding.sequence = 8;
    EXPECT_EQ(play_of(finding, plays), 0u);
    finding.sequence = 9;
    EXPECT_EQ(play_of(finding, plays), 1u);
    finding.cpu = 1;
    EXPECT_EQ(play_of(finding, plays), 2u);
    finding.cpu = 7;  // not a CPU of the run
    EXPECT_EQ(play_of(finding, plays), 2u);
}

}  // namespace
}  // namespace kmes::conformance
