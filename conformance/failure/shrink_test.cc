// SPDX-License-Identifier: MIT
//
// The search of shrink. Functions replace the testee.
#include "conformance/failure/shrink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <string>

namespace kmes::conformance {
namespace {

Move move_at(std::uint32_t phase, std::uint64_t offset, std::uint64_t occurrence, Action action,
             std::uint64_t parameter = 0) {
    return {{phase, 0, offset, 8, false, occurrence, 0}, action, parameter};
}

Schedule schedule_of(std::vector<Move> moves) {
    return {"sleep", 1, std::move(moves)};
}

bool has(const Schedule& schedule, const std::function<bool(const Move&)>& what) {
    return std::any_of(schedule.moves.begin(), schedule.moves.end(), what);
}

// Counts the plays.
class Testee {
  public:
    explicit Testee(std::function<bool(const Schedule&)> fails) : fails_(std::move(fails)) {}
    Trial operator()(const Schedule& schedule) {
        ++runs;
        return fails_(schedule) ? Trial::fails : Trial::passes;
    }
    std::uint32_t runs = 0;

  private:
    std::function<bool(const Schedule&)> fails_;
};

Shrunk shrink_with(Testee& testee, const Schedule& schedule,
                   const std::vector<AccessPoint>& points = {}, ShrinkLimits limits = {}) {
    return shrink(schedule, std::ref(testee), points, limits);
}

TEST(Shrink, LeavesTheOneMoveThatMatters) {
    std::vector<Move> moves;
    for (std::uint64_t i = 1; i <= 40; ++i) moves.push_back(move_at(1, 128, i, Action::wake));
    moves[27] = move_at(2, 64, 1, Action::swap);
    Testee testee([](const Schedule& schedule) {
        return has(schedule, [](const Move& move) {
            return move.action == Action::swap && move.point.offset_bytes == 64 &&
                   move.point.phase == 2;
        });
    });
    const Shrunk shrunk = shrink_with(testee, schedule_of(moves));
    EXPECT_TRUE(shrunk.fails);
    EXPECT_TRUE(shrunk.whole);
    EXPECT_EQ(shrunk.smallest, schedule_of({move_at(2, 64, 1, Action::swap)}));
    EXPECT_EQ(shrunk.runs, testee.runs);
}

// A move of a row names a step of it, and its access: only counts and accesses can become smaller.
TEST(Shrink, KeepsTheStepsOfARow) {
    const auto step = [](std::uint32_t number, std::uint64_t count) {
        Move move = move_at(number, 0, 1, Action::nothing, count);
        move.point.kind = PointKind::row_step;
        return move;
    };
    const auto access = [](std::uint64_t occurrence, std::uint64_t wakes) {
        Move move = move_at(9, 0, occurrence, Action::nothing, wakes);
        move.point.kind = PointKind::row_access;
        return move;
    };
    const std::vector<std::uint32_t> steps{2, 4, 9};
    Testee testee([&](const Schedule& schedule) {
        // The result has only steps of the row.
        for (const Move& move : schedule.moves)
            EXPECT_TRUE(std::ranges::find(steps, move.point.phase) != steps.end());
        return has(schedule, [&](const Move& move) { return move.point.phase == 4; }) &&
               has(schedule, [](const Move& move) {
                   return move.point.kind == PointKind::row_access && move.point.occurrence >= 3 &&
                          move.parameter >= 1;
               });
    });
    const Shrunk shrunk = shrink_with(testee, schedule_of({step(2, 8), step(4, 3), access(7, 19)}));
    EXPECT_TRUE(shrunk.fails);
    EXPECT_EQ(shrunk.smallest, schedule_of({step(4, 0), access(3, 1)}));
    ASSERT_TRUE(shrunk.nearest_passing);
    EXPECT_EQ(*shrunk.nearest_passing, schedule_of({step(4, 0), access(2, 1)}));
}

TEST(Shrink, LeavesTwoMovesThatNeedEachOther) {
    std::vector<Move> moves;
    for (std::uint64_t i = 1; i <= 12; ++i) moves.push_back(move_at(1, 128, i, Action::nudge));
    moves[2].action = Action::swap;
    moves[9].action = Action::lap;
    Testee testee([](const Schedule& schedule) {
        return has(schedule, [](const Move& move) { return move.action == Action::swap; }) &&
               has(schedule, [](const Move& move) { return move.action == Action::lap; });
    });
    const Shrunk shrunk = shrink_with(testee, schedule_of(moves));
    ASSERT_EQ(shrunk.smallest.moves.size(), 2u);
    EXPECT_EQ(shrunk.smallest.moves[0].action, Action::swap);
    EXPECT_EQ(shrunk.smallest.moves[1].action, Action::lap);
    // The earliest point, because any point fails.
    EXPECT_EQ(shrunk.smallest.moves[0].point.phase, 0u);
    EXPECT_EQ(shrunk.smallest.moves[0].point.occurrence, 1u);
}

TEST(Shrink, TakesTheSimplestAction) {
    Testee testee([](const Schedule& schedule) {
        return has(schedule, [](const Move& move) {
            return move.action != Action::nothing && move.action != Action::wake &&
                   move.point.occurrence == 3 && move.point.phase == 1;
        });
    });
    const Shrunk shrunk = shrink_with(testee, schedule_of({move_at(1, 64, 3, Action::tear, 19)}));
    EXPECT_EQ(shrunk.smallest, schedule_of({move_at(1, 64, 3, Action::emit)}));
}

TEST(Shrink, TakesTheSmallestParameter) {
    for (const std::uint64_t least : {0, 1, 2, 7, 12, 13}) {
        Testee testee([least](const Schedule& schedule) {
            return has(schedule, [least](const Move& move) {
                return move.action == Action::reserve && move.parameter >= least;
            });
        });
        const Shrunk shrunk =
            shrink_with(testee, schedule_of({move_at(1, 64, 1, Action::reserve, 13)}));
        ASSERT_EQ(shrunk.smallest.moves.size(), 1u);
        EXPECT_EQ(shrunk.smallest.moves[0].parameter, least);
    }
}

TEST(Shrink, TakesTheStateThatIsWrittenMost) {
    for (const Written most : {Written::whole, Written::half, Written::header, Written::nothing}) {
        Testee testee([most](const Schedule& schedule) {
            return has(schedule, [most](const Move& move) {
                return move.action == Action::reserve && move.written >= most;
            });
        });
        Move move = move_at(1, 64, 1, Action::reserve);
        move.written = Written::nothing;
        const Shrunk shrunk = shrink_with(testee, schedule_of({move}));
        ASSERT_EQ(shrunk.smallest.moves.size(), 1u);
        EXPECT_EQ(shrunk.smallest.moves[0].written, most);
        ASSERT_TRUE(shrunk.nearest_passing);
        if (most == Written::whole) continue;
        EXPECT_EQ(shrunk.difference, "with more of the event written");
        EXPECT_EQ(shrunk.nearest_passing->moves[0].written,
                  static_cast<Written>(static_cast<int>(most) - 1));
    }
}

TEST(Shrink, TakesTheEarliestOccurrenceAndPhase) {
    for (const std::uint64_t least : {1, 2, 3, 4, 9, 500}) {
        Testee testee([least](const Schedule& schedule) {
            return has(schedule, [least](const Move& move) {
                return move.point.phase == 2 && move.point.occurrence >= least &&
                       move.action == Action::emit;
            });
        });
        const Shrunk shrunk =
            shrink_with(testee, schedule_of({move_at(2, 64, 1000, Action::emit)}));
        ASSERT_EQ(shrunk.smallest.moves.size(), 1u);
        EXPECT_EQ(shrunk.smallest.moves[0].point.occurrence, least);
        EXPECT_EQ(shrunk.smallest.moves[0].point.phase, 2u);
        EXPECT_TRUE(shrunk.whole);
    }
}

TEST(Shrink, GivesUpTheMiddleOfAnAccessWhereItsBeginningDoes) {
    Move torn = move_at(1, 4096, 1, Action::tear, 3);
    torn.point.split_bytes = 16;
    Testee testee([](const Schedule& schedule) { return !schedule.moves.empty(); });
    const Shrunk shrunk = shrink_with(testee, schedule_of({torn}));
    ASSERT_EQ(shrunk.smallest.moves.size(), 1u);
    EXPECT_EQ(shrunk.smallest.moves[0].point.split_bytes, 0u);
    EXPECT_EQ(shrunk.smallest.moves[0].action, Action::nothing);
}

TEST(Shrink, TheNearestPassingScheduleIsOneAccessAway) {
    const std::vector<AccessPoint> points = {{1, 0, 128, 4, false, 1, 0},
                                             {1, 0, 132, 1, true, 1, 0},
                                             {1, 0, 64, 8, false, 1, 0},
                                             {1, 0, 32, 8, false, 1, 0}};
    Testee testee([&](const Schedule& schedule) {
        return has(schedule, [&](const Move& move) {
            return move.action == Action::emit &&
                   (move.point == points[2] || move.point == points[3]);
        });
    });
    const Shrunk shrunk =
        shrink_with(testee, schedule_of({Move{points[2], Action::emit, 0}}), points);
    ASSERT_TRUE(shrunk.nearest_passing);
    // One access later fails as well.
    EXPECT_EQ(*shrunk.nearest_passing, schedule_of({Move{points[1], Action::emit, 0}}));
    EXPECT_EQ(shrunk.difference, "one access earlier");
}

// The caller replaces the points by those of the last play that failed.
TEST(Shrink, AFailingPlayMayChangeThePoints) {
    const std::vector<AccessPoint> all = {
        {1, 0, 132, 1, true, 1, 0}, {1, 0, 64, 8, false, 1, 0}, {1, 0, 32, 8, false, 1, 0}};
    std::vector<AccessPoint> points = all;
    Testee testee([&](const Schedule& schedule) {
        const auto is_at = [&](std::size_t index) {
            return has(schedule, [&](const Move& move) {
                return move.action == Action::emit && move.point == all[index];
            });
        };
        if (is_at(2)) {
            points.clear();
            points.shrink_to_fit();
        }
        return is_at(1) || is_at(2);
    });
    const Shrunk shrunk = shrink_with(testee, schedule_of({Move{all[1], Action::emit, 0}}), points);
    ASSERT_TRUE(shrunk.nearest_passing);
    EXPECT_EQ(*shrunk.nearest_passing, schedule_of({Move{all[0], Action::emit, 0}}));
    EXPECT_EQ(shrunk.difference, "one access earlier");
}

TEST(Shrink, WithoutTheOrderTheNearestIsTheNextOfItsKind) {
    Testee testee([](const Schedule& schedule) {
        return has(schedule, [](const Move& move) {
            return move.action == Action::emit && move.point.occurrence == 2 &&
                   move.point.phase == 1;
        });
    });
    const Shrunk shrunk = shrink_with(testee, schedule_of({move_at(1, 64, 2, Action::emit)}));
    ASSERT_TRUE(shrunk.nearest_passing);
    EXPECT_EQ(*shrunk.nearest_passing, schedule_of({move_at(1, 64, 3, Action::emit)}));
    EXPECT_EQ(shrunk.difference, "at the next access of the same kind");
}

TEST(Shrink, WhereEveryPointFailsAWeakerActionPasses) {
    Testee testee([](const Schedule& schedule) {
        return has(schedule, [](const Move& move) { return move.action == Action::lap; });
    });
    const Shrunk shrunk = shrink_with(testee, schedule_of({move_at(0, 64, 1, Action::lap)}));
    ASSERT_TRUE(shrunk.nearest_passing);
    EXPECT_EQ(*shrunk.nearest_passing, schedule_of({move_at(0, 64, 1, Action::lap_part)}));
    EXPECT_EQ(shrunk.difference, "with \"lap_part\" in its place");
}

TEST(Shrink, WhereTheScenarioAloneFailsNothingPasses) {
    Testee testee([](const Schedule&) { return true; });
    const Shrunk shrunk = shrink_with(testee, schedule_of({move_at(0, 64, 1, Action::lap)}));
    EXPECT_TRUE(shrunk.smallest.moves.empty());
    EXPECT_FALSE(shrunk.nearest_passing);
}

TEST(Shrink, SaysWhenItDoesNotFailAgain) {
    Testee testee([](const Schedule&) { return false; });
    const Shrunk shrunk = shrink_with(testee, schedule_of({move_at(0, 64, 1, Action::lap)}));
    EXPECT_FALSE(shrunk.fails);
    EXPECT_EQ(shrunk.runs, 5u);
    EXPECT_FALSE(shrunk.nearest_passing);
}

// The schedule fails once, by chance. Another kind of failure counts neither as the failure nor as
// a pass.
TEST(Shrink, AnotherFailureIsNoPass) {
    const Schedule start = schedule_of({move_at(0, 64, 1, Action::emit)});
    const Shrunk shrunk = shrink(
        start,
        [&](const Schedule& schedule) { return schedule == start ? Trial::fails : Trial::other; },
        {});
    EXPECT_EQ(shrunk.smallest, start);
    EXPECT_FALSE(shrunk.nearest_passing);
}

TEST(Shrink, WhatPassesOnlyOnceIsNotCalledPassing) {
    const Schedule start = schedule_of({move_at(0, 64, 1, Action::emit)});
    std::map<std::string, int> asked;
    const Shrunk shrunk = shrink(start,
                                 [&](const Schedule& schedule) {
                                     if (schedule == start) return Trial::fails;
                                     std::string key;
                                     for (const Move& move : schedule.moves)
                                         key += std::to_string(move.point.occurrence) + "/" +
                                                std::to_string(static_cast<int>(move.action)) + " ";
                                     return ++asked[key] == 1 ? Trial::passes : Trial::fails;
                                 },
                                 {});
    EXPECT_FALSE(shrunk.nearest_passing);
}

TEST(Shrink, EndsAtItsLimitWithWhatItHas) {
    std::vector<Move> moves;
    for (std::uint64_t i = 1; i <= 500; ++i) moves.push_back(move_at(1, 128, i, Action::lap));
    Testee testee([](const Schedule& schedule) { return schedule.moves.size() >= 100; });
    const Shrunk shrunk = shrink_with(testee, schedule_of(moves), {}, {.runs = 40});
    EXPECT_FALSE(shrunk.whole);
    EXPECT_LE(testee.runs, 40u);
    EXPECT_EQ(shrunk.runs, testee.runs);
    EXPECT_LT(shrunk.smallest.moves.size(), 500u);
    EXPECT_GE(shrunk.smallest.moves.size(), 100u);
}

std::uint64_t peak_kib() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::uint64_t>(usage.ru_maxrss);
}

// A file may have thousands of moves, and every neighbour of a schedule is a copy of all of them.
TEST(Shrink, HasOneNeighbourAtATimeInMemory) {
    std::vector<Move> moves;
    for (std::uint64_t i = 1; i <= 2000; ++i) moves.push_back(move_at(1, 128, i, Action::yield));
    Testee testee([](const Schedule& schedule) { return schedule.moves.size() >= 2000; });
    const std::uint64_t before_kib = peak_kib();
    const Shrunk shrunk = shrink_with(testee, schedule_of(moves), {}, {.runs = 8});
    EXPECT_TRUE(shrunk.fails);
    EXPECT_LT(peak_kib() - before_kib, std::uint64_t{1} << 20);
}

// For any failing set: the result fails, and the nearest passing schedule passes.
TEST(Shrink, NeverTakesWhatDoesNotFail) {
    std::mt19937 random(7);
    for (int iteration = 0; iteration < 200; ++iteration) {
        std::vector<Move> moves;
        for (std::uint32_t i = 1 + random() % 12; i > 0; --i)
            moves.push_back(move_at(random() % 3, 64, 1 + random() % 9,
                                    static_cast<Action>(random() % 17), random() % 20));
        const Move needed = moves[random() % moves.size()];
        Testee testee([&](const Schedule& schedule) {
            return has(schedule, [&](const Move& move) {
                return move.action >= needed.action && move.parameter >= needed.parameter / 2 &&
                       move.point.occurrence % 3 == needed.point.occurrence % 3;
            });
        });
        const Shrunk shrunk = shrink_with(testee, schedule_of(moves), {}, {.runs = 100});
        ASSERT_TRUE(shrunk.fails);
        ASSERT_EQ(testee(shrunk.smallest), Trial::fails);
        ASSERT_LE(shrunk.smallest.moves.size(), moves.size());
        if (shrunk.nearest_passing) {
            ASSERT_EQ(testee(*shrunk.nearest_passing), Trial::passes);
        }
    }
}

}  // namespace
}  // namespace kmes::conformance
