// SPDX-License-Identifier: MIT
//
// Which moves lead to the same play, for hand-made traces.
#include "conformance/explorer/equivalence.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/oracle/layout.h"

namespace kmes::conformance {
namespace {

constexpr std::uint64_t kData = 4096;

TraceEntry load(std::uint64_t offset, std::uint32_t size = 8, std::uint32_t cpu = 0) {
    TraceEntry entry;
    entry.point.offset_bytes = offset;
    entry.point.size_bytes = size;
    entry.point.cpu = cpu;
    return entry;
}

TraceEntry store(std::uint64_t offset, std::uint32_t size) {
    TraceEntry entry = load(offset, size);
    entry.point.is_write = true;
    return entry;
}

// Whether the action before the first of two accesses is left out, because the play is the same
// with the action before the second one.
bool is_one_play(Action action, TraceEntry first, TraceEntry second, std::uint32_t further = 0,
                 std::uint32_t cpus = 1) {
    second.point.occurrence += first.point == second.point ? 1 : 0;
    const std::vector<Move> moves{{first.point, action, 0, further},
                                  {second.point, action, 0, further}};
    const std::vector<Move> kept = without_equivalent(moves, {first, second}, cpus).moves;
    EXPECT_EQ(kept.back(), moves[1]);
    return kept.size() == 1;
}

constexpr Action kEmissions[] = {Action::emit,     Action::burst, Action::batch,
                                 Action::lap_part, Action::lap,   Action::laps};
constexpr Action kSwaps[] = {Action::grow, Action::shrink, Action::swap, Action::swap_twice};
constexpr Action kOfMoreThanMemory[] = {Action::reserve,  Action::write_over, Action::tear,
                                        Action::overtake, Action::hold,       Action::yield};

TEST(Equivalence, AnEmissionPassesALoadThatItDoesNotChange) {
    for (const Action action : kEmissions) {
        EXPECT_TRUE(is_one_play(action, load(kGenerationOffset), load(kWritePosOffset)));
        EXPECT_TRUE(is_one_play(action, load(kNeedWakeOffset, 1), load(kWritePosOffset)));
        EXPECT_FALSE(is_one_play(action, load(kWritePosOffset), load(kGenerationOffset)));
        EXPECT_FALSE(is_one_play(action, load(kTailPosOffset), load(kGenerationOffset)));
        EXPECT_FALSE(is_one_play(action, load(kFutexCounterOffset, 4), load(kGenerationOffset)));
        EXPECT_FALSE(is_one_play(action, load(kData + 8, 4), load(kGenerationOffset)));
    }
}

TEST(Equivalence, ASwapPassesLoadsOfPositionsAndData) {
    for (const Action action : kSwaps) {
        EXPECT_TRUE(is_one_play(action, load(kWritePosOffset), load(kTailPosOffset)));
        EXPECT_TRUE(is_one_play(action, load(kData + 64, 16), load(kTailPosOffset)));
        EXPECT_FALSE(is_one_play(action, load(kGenerationOffset), load(kWritePosOffset)));
        EXPECT_FALSE(is_one_play(action, load(kFutexCounterOffset, 4), load(kWritePosOffset)));
        EXPECT_FALSE(is_one_play(action, load(kGenerationOffset, 8, 1),
                                 load(kGenerationOffset, 8, 1), 0, 2));
    }
}

// E19: a nudge changes the generation of the retired buffer.
TEST(Equivalence, ANudgePassesNoLoadOfGeneration) {
    EXPECT_TRUE(is_one_play(Action::nudge, load(kWritePosOffset), load(kTailPosOffset)));
    EXPECT_FALSE(is_one_play(Action::nudge, load(kGenerationOffset), load(kWritePosOffset)));
    EXPECT_FALSE(is_one_play(Action::nudge, load(kFutexCounterOffset, 4), load(kWritePosOffset)));
}

TEST(Equivalence, AWideLoadTouchesAllThatItCovers) {
    EXPECT_FALSE(is_one_play(Action::emit, load(kGenerationOffset, 64), load(kTailPosOffset)));
    EXPECT_FALSE(is_one_play(Action::swap, load(kGenerationOffset - 8, 16), load(kTailPosOffset)));
    EXPECT_FALSE(is_one_play(Action::emit, load(kData - 8, 16), load(kTailPosOffset)));
}

TEST(Equivalence, NothingPassesAStore) {
    for (int action = 0; action <= static_cast<int>(Action::yield); ++action)
        EXPECT_FALSE(is_one_play(static_cast<Action>(action), store(kNeedWakeOffset, 1),
                                 load(kGenerationOffset)));
}

TEST(Equivalence, AWakeAndADropPassEveryLoad) {
    for (const Action action : {Action::wake, Action::drop}) {
        for (const std::uint64_t offset :
             {kGenerationOffset, kWritePosOffset, kFutexCounterOffset, kData})
            EXPECT_TRUE(is_one_play(action, load(offset), load(kTailPosOffset)));
    }
}

TEST(Equivalence, WhatDependsOnMoreThanMemoryStays) {
    for (const Action action : kOfMoreThanMemory)
        EXPECT_FALSE(is_one_play(action, load(kGenerationOffset), load(kGenerationOffset)));
}

TEST(Equivalence, NothingPassesAGapAPhaseOrAWait) {
    TraceEntry after_a_gap = load(kTailPosOffset);
    after_a_gap.is_after_gap = true;
    EXPECT_FALSE(is_one_play(Action::swap, load(kWritePosOffset), after_a_gap));
    TraceEntry later = load(kTailPosOffset);
    later.point.phase = 1;
    EXPECT_FALSE(is_one_play(Action::swap, load(kWritePosOffset), later));
    TraceEntry wait = load(kFutexCounterOffset, 4);
    wait.point.kind = PointKind::wait;
    EXPECT_FALSE(is_one_play(Action::wake, load(kGenerationOffset), wait));
    EXPECT_FALSE(is_one_play(Action::wake, wait, load(kGenerationOffset)));
}

// The thread that attaches may read in phase 0.
TEST(Equivalence, NothingPassesWhereSeveralThreadsRead) {
    const auto kept = [](std::uint32_t phase_of_the_other, std::uint32_t phase) {
        std::vector<TraceEntry> trace{load(kWritePosOffset, 4), load(kWritePosOffset),
                                      load(kTailPosOffset)};
        trace[0].point.phase = phase_of_the_other;
        trace[0].thread = 2;
        for (std::size_t i = 1; i < trace.size(); ++i) {
            trace[i].point.phase = phase;
            trace[i].thread = 1;
        }
        const std::vector<Move> moves{{trace[1].point, Action::swap},
                                      {trace[2].point, Action::swap}};
        return without_equivalent(moves, trace, 1).moves.size();
    };
    EXPECT_EQ(kept(0, 1), 1u);
    EXPECT_EQ(kept(0, 0), 2u);
    EXPECT_EQ(kept(1, 1), 2u);
    EXPECT_EQ(kept(2, 1), 2u);
}

TEST(Equivalence, AnEmissionOnAnotherCpuPassesEveryLoad) {
    EXPECT_TRUE(is_one_play(Action::emit, load(kWritePosOffset), load(kTailPosOffset), 1, 2));
    EXPECT_FALSE(is_one_play(Action::emit, load(kWritePosOffset), load(kTailPosOffset), 2, 2));
    // The action is on the CPU of its point.
    EXPECT_FALSE(
        is_one_play(Action::swap, load(kWritePosOffset, 8, 0), load(kWritePosOffset, 8, 1), 0, 2));
}

// Points are thinned out, so each access between two points counts.
TEST(Equivalence, EveryAccessBetweenTwoPointsCounts) {
    const std::vector<TraceEntry> trace{load(kWritePosOffset), load(kGenerationOffset),
                                        load(kTailPosOffset)};
    const std::vector<Move> moves{{trace[0].point, Action::swap}, {trace[2].point, Action::swap}};
    EXPECT_EQ(without_equivalent(moves, trace, 1).moves, moves);
    const std::vector<TraceEntry> plain{load(kWritePosOffset), load(kData), load(kTailPosOffset)};
    EXPECT_EQ(without_equivalent(moves, plain, 1).moves, std::vector<Move>{moves[1]});
}

TEST(Equivalence, AChainLeavesItsLastMoveAndKeepsTheOrder) {
    const std::vector<TraceEntry> trace{load(kWritePosOffset), load(kTailPosOffset), load(kData),
                                        load(kGenerationOffset)};
    std::vector<Move> moves;
    for (const Action action : {Action::emit, Action::swap}) {
        for (const TraceEntry& entry : trace) moves.push_back({entry.point, action});
    }
    const Distinct distinct = without_equivalent(moves, trace, 1);
    EXPECT_EQ(distinct.moves,
              (std::vector<Move>{moves[0], moves[1], moves[2], moves[3], moves[7]}));
    // All moves of the chain lead to the play of its last one.
    EXPECT_EQ(
        distinct.same_as,
        (std::map<Move, Move>{{moves[4], moves[7]}, {moves[5], moves[7]}, {moves[6], moves[7]}}));
}

}  // namespace
}  // namespace kmes::conformance
