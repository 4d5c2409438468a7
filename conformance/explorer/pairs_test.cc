// SPDX-License-Identifier: MIT
//
// For each pair of moves of a hand-made trace, the pair or an equivalent pair is played.
#include "conformance/explorer/pairs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "conformance/oracle/layout.h"

namespace kmes::conformance {
namespace {

constexpr std::uint64_t kData = 4096;

std::vector<TraceEntry> trace_of(const std::vector<std::uint64_t>& offsets) {
    std::vector<TraceEntry> trace;
    for (const std::uint64_t offset : offsets) {
        TraceEntry entry;
        entry.point.offset_bytes = offset;
        entry.point.size_bytes = 8;
        entry.point.occurrence = static_cast<std::uint64_t>(
            1 + std::ranges::count_if(trace, [&](const TraceEntry& before) {
                return before.point.offset_bytes == offset;
            }));
        trace.push_back(entry);
    }
    return trace;
}

std::size_t place_in(const std::vector<TraceEntry>& trace, const AccessPoint& point) {
    return static_cast<std::size_t>(
        std::ranges::find(trace, point, [](const TraceEntry& each) { return each.point; }) -
        trace.begin());
}

// What the consumer sees of a play: for each load, the actions before it, in their order, that have
// changed what it loads. The last list has all actions.
using Seen = std::vector<std::vector<Action>>;

Seen seen_of(const std::vector<TraceEntry>& trace, const std::vector<Move>& moves) {
    Seen seen(trace.size() + 1);
    for (const Move& move : moves) {
        for (std::size_t i = place_in(trace, move.point); i < trace.size(); ++i) {
            if (!commutes(move.action, true, trace[i].point)) seen[i].push_back(move.action);
        }
        seen.back().push_back(move.action);
    }
    return seen;
}

// The pairs at these points that lead to a play of their own, which no played pair leads to.
std::vector<std::pair<Move, Move>> not_played(const std::vector<TraceEntry>& trace,
                                              const std::set<AccessPoint>& points) {
    std::vector<Move> all;
    for (const Action action : kPairActions) {
        for (const TraceEntry& entry : trace) all.push_back({entry.point, action});
    }
    const Distinct distinct = without_equivalent(all, trace, 1);
    EXPECT_FALSE(distinct.same_as.empty());
    const FirstMoves firsts = first_of_pairs(all, distinct, points);
    std::set<Seen> played;
    for (const std::vector<Move>& moves : firsts.at_one_point) played.insert(seen_of(trace, moves));
    for (const Move& first : firsts.with_later_ones) {
        // The course of the first move is the trace, because no access depends on a value here.
        for (std::size_t i = place_in(trace, first.point) + 1; i < trace.size(); ++i) {
            for (const Action action : kPairActions) {
                if (is_second_of_pairs(action, trace[i].point))
                    played.insert(seen_of(trace, {first, {trace[i].point, action}}));
            }
        }
    }
    std::vector<std::pair<Move, Move>> missing;
    for (const AccessPoint& one : points) {
        for (const AccessPoint& other : points) {
            if (place_in(trace, one) > place_in(trace, other)) continue;
            for (const Action action : kPairActions) {
                for (const Action second : kPairActions) {
                    const Move first_move{one, action};
                    const Move second_move{other, second};
                    if (is_second_of_pairs(second, other) &&
                        !played.contains(seen_of(trace, {first_move, second_move})))
                        missing.emplace_back(first_move, second_move);
                }
            }
        }
    }
    return missing;
}

std::set<AccessPoint> points_of(const std::vector<TraceEntry>& trace) {
    std::set<AccessPoint> points;
    for (const TraceEntry& entry : trace) points.insert(entry.point);
    return points;
}

// A check, a drain and the checks before a sleep.
const std::vector<std::uint64_t> kOffsets{
    kGenerationOffset, kWritePosOffset, kTailPosOffset,      kData,           kData + 8,
    kTailPosOffset,    kWritePosOffset, kFutexCounterOffset, kWritePosOffset, kGenerationOffset};

TEST(Pairs, EveryPairIsPlayedOrEqualsOneThatIs) {
    const std::vector<TraceEntry> trace = trace_of(kOffsets);
    for (const auto& [first, second] : not_played(trace, points_of(trace)))
        ADD_FAILURE() << describe(first) << "; then " << describe(second);
}

// The move that represents equivalent ones can then be at an access that is not a point.
TEST(Pairs, AreAllPlayedIfAPointIsLeftOut) {
    const std::vector<TraceEntry> trace = trace_of(kOffsets);
    for (std::size_t left_out = 0; left_out < trace.size(); ++left_out) {
        std::set<AccessPoint> points = points_of(trace);
        points.erase(trace[left_out].point);
        EXPECT_TRUE(not_played(trace, points).empty()) << describe(trace[left_out].point);
    }
}

TEST(Pairs, BeginWithOneOfFourActionsWithoutAParameter) {
    const std::vector<TraceEntry> trace = trace_of({kWritePosOffset});
    const AccessPoint point = trace.front().point;
    const std::vector<Move> all{
        {point, Action::swap}, {point, Action::swap, 1}, {point, Action::lap}};
    const FirstMoves firsts = first_of_pairs(all, {all, {}}, {point});
    EXPECT_EQ(firsts.with_later_ones, (std::set<Move>{{point, Action::swap}}));
    EXPECT_EQ(firsts.at_one_point.size(), kPairActions.size());
}

}  // namespace
}  // namespace kmes::conformance
