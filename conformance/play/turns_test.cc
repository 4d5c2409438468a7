// SPDX-License-Identifier: MIT
//
// Turns: priorities hold until a change, a change gives one actor the lowest priority, and a seed
// determines the course.
#include "conformance/play/turns.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace kmes::conformance {
namespace {

constexpr std::uint32_t kCpus = 3;
constexpr std::uint64_t kSeeds = 300;

Turns turns_of(std::uint64_t seed, Turning turning = Turning::by_priority) {
    return Turns(seed, kCpus, turning);
}

Turns with_two_threads(std::uint64_t seed, Turning turning = Turning::by_priority) {
    Turns turns = turns_of(seed, turning);
    turns.add(1, 0);
    turns.add(2, 1);
    return turns;
}

// The first steps of two threads and the sources: a thread number, or 0 for an action.
std::vector<pid_t> course(std::uint64_t seed, Turning turning) {
    Turns turns = with_two_threads(seed, turning);
    std::vector<pid_t> steps;
    for (int i = 0; i < 200; ++i) {
        const pid_t first = turns.goes_before(1, 2) ? 1 : 2;
        if (turns.next_before(first)) {
            steps.push_back(0);
        } else {
            turns.step(first);
            steps.push_back(first);
        }
    }
    return steps;
}

TEST(Turns, ASeedIsOneCourse) {
    for (const Turning turning : {Turning::by_priority, Turning::at_random}) {
        std::set<std::vector<pid_t>> all;
        for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
            const std::vector<pid_t> steps = course(seed, turning);
            EXPECT_EQ(steps, course(seed, turning)) << seed;
            all.insert(steps);
        }
        EXPECT_GT(all.size(), kSeeds / 2);
    }
}

// The order in which the machine runs threads first must not matter.
TEST(Turns, PrioritiesDoNotHangOnWhoWasSeenFirst) {
    std::uint64_t first_goes_before = 0;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        Turns turns = with_two_threads(seed);
        Turns other = turns_of(seed);
        other.add(2, 1);
        other.add(1, 0);
        EXPECT_EQ(turns.goes_before(1, 2), other.goes_before(1, 2)) << seed;
        first_goes_before += turns.goes_before(1, 2) ? 1 : 0;
    }
    EXPECT_GT(first_goes_before, kSeeds / 4);
    EXPECT_LT(first_goes_before, kSeeds * 3 / 4);
}

TEST(Turns, AtRandomEverybodyComesFirstAtSomeTime) {
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        Turns turns = with_two_threads(seed, Turning::at_random);
        std::set<bool> orders;
        for (int i = 0; i < 5000; ++i) {
            turns.step(1);
            orders.insert(turns.goes_before(1, 2));
        }
        EXPECT_EQ(orders.size(), 2u) << seed;
    }
}

TEST(Turns, OnlyAChangeMovesAThread) {
    std::uint64_t changes = 0;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        Turns turns = with_two_threads(seed);
        for (int i = 0; i < 100; ++i) {
            const bool was_before = turns.goes_before(1, 2);
            const pid_t first = was_before ? 1 : 2;
            const bool has_changed = turns.step(first);
            changes += has_changed ? 1 : 0;
            EXPECT_EQ(turns.goes_before(1, 2), was_before != has_changed) << seed;
        }
    }
    EXPECT_GT(changes, kSeeds / 4);
    EXPECT_LT(changes, 6 * kSeeds);
}

// A thread of the lowest priority lets all actions come first.
TEST(Turns, AThreadThatLostItsPriorityLetsTheSourcesGoFirst) {
    std::uint64_t seen = 0;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        Turns turns = turns_of(seed);
        turns.add(1, 0);
        bool has_changed = false;
        // Enough steps that no change is left for the sources.
        for (int i = 0; i < 4096; ++i) has_changed = turns.step(1) || has_changed;
        if (!has_changed) continue;
        ++seen;
        while (turns.next_before(1)) continue;
        EXPECT_FALSE(turns.next()) << seed;
    }
    EXPECT_GT(seen, kSeeds / 4);
}

TEST(Turns, WhileNobodyCanGoOnEveryActionComes) {
    std::set<Action> seen;
    for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
        Turns turns = turns_of(seed);
        std::uint64_t actions = 0;
        for (; const auto chosen = turns.next(); ++actions) {
            EXPECT_LT(chosen->cpu, kCpus);
            EXPECT_TRUE(chosen->action == Action::emit || chosen->parameter < 12);
            seen.insert(chosen->action);
        }
        EXPECT_GE(actions, 1u);
        EXPECT_LE(actions, 36u);
    }
    EXPECT_GT(seen.size(), 10u);
    // A source never does something to a thread, or an action that needs an access to the data.
    for (const Action never : {Action::hold, Action::yield, Action::tear})
        EXPECT_FALSE(seen.contains(never)) << static_cast<int>(never);
}

TEST(Turns, AKnownThreadKeepsItsPriority) {
    Turns turns = with_two_threads(7);
    const bool before = turns.goes_before(1, 2);
    for (std::uint32_t cpu = 0; cpu < kCpus; ++cpu) turns.add(1, cpu);
    EXPECT_EQ(turns.goes_before(1, 2), before);
    EXPECT_EQ(turns.threads().size(), 2u);
}

}  // namespace
}  // namespace kmes::conformance
