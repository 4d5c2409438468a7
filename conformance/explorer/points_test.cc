// SPDX-License-Identifier: MIT
//
// From a trace to points and moves, for hand-made traces.
#include "conformance/explorer/points.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "conformance/explorer/scenarios.h"
#include "conformance/play/moves.h"

namespace kmes::conformance {
namespace {

constexpr std::uint64_t kWritePos = 64;
constexpr std::uint64_t kTailPos = 72;

TraceEntry access(std::uint64_t offset, std::uint64_t occurrence, std::uint32_t size = 8,
                  std::uint32_t phase = 0) {
    TraceEntry entry;
    entry.point.phase = phase;
    entry.point.offset_bytes = offset;
    entry.point.size_bytes = size;
    entry.point.occurrence = occurrence;
    return entry;
}

TEST(Points, AreTheAccessesInOrder) {
    const std::vector<TraceEntry> trace{access(kWritePos, 1), access(kTailPos, 1),
                                        access(kWritePos, 2)};
    const std::vector<AccessPoint> points = points_of(trace, 0, Density::all_data);
    ASSERT_EQ(points.size(), 3u);
    EXPECT_EQ(points[0], trace[0].point);
    EXPECT_EQ(points[1], trace[1].point);
    EXPECT_EQ(points[2], trace[2].point);
}

TEST(Points, OfASpinAreItsFirstLoadsAndItsLast) {
    std::vector<TraceEntry> trace;
    for (std::uint64_t i = 1; i <= 1000; ++i) trace.push_back(access(kWritePos, i));
    std::set<std::uint64_t> occurrences;
    for (const AccessPoint& point : points_of(trace, 0, Density::all_data))
        occurrences.insert(point.occurrence);
    EXPECT_EQ(occurrences, (std::set<std::uint64_t>{1, 2, 3, 999, 1000}));
}

TEST(Points, LeaveOutEarlierPhasesAndStaticFields) {
    const std::vector<TraceEntry> trace{access(0, 1), access(16, 1), access(kWritePos, 1),
                                        access(kWritePos, 1, 8, 1)};
    EXPECT_EQ(points_of(trace, 0, Density::all_data).size(), 2u);
    const std::vector<AccessPoint> later = points_of(trace, 1, Density::all_data);
    ASSERT_EQ(later.size(), 1u);
    EXPECT_EQ(later[0].phase, 1u);
    // A snapshot of the page begins there, and has the other fields too.
    EXPECT_EQ(points_of({access(0, 1, 64)}, 0, Density::all_data).size(), 1u);
}

TEST(Points, ThinOutLongRunsOfDataButKeepTheirEnds) {
    std::vector<TraceEntry> trace{access(kWritePos, 1)};
    for (std::uint64_t i = 0; i < 500; ++i) trace.push_back(access(4096 + 8 * i, 1));
    trace.push_back(access(kTailPos, 1));
    EXPECT_EQ(points_of(trace, 0, Density::all_data).size(), 502u);
    const std::vector<AccessPoint> thinned = points_of(trace, 0, Density::thinned);
    EXPECT_LT(thinned.size(), 40u);
    const auto has = [&thinned](std::uint64_t offset) {
        return std::any_of(thinned.begin(), thinned.end(), [offset](const AccessPoint& point) {
            return point.offset_bytes == offset;
        });
    };
    EXPECT_TRUE(has(4096) && has(4096 + 8 * 499) && has(kWritePos) && has(kTailPos));
}

TEST(Moves, EveryActionComesAtEveryPoint) {
    const std::vector<AccessPoint> points{access(kWritePos, 1).point, access(4096, 1).point};
    const std::vector<Move> moves = moves_at(points, *find_scenario("wake"), true);
    std::set<Action> at_metadata;
    std::set<Action> at_data;
    for (const Move& move : moves)
        (move.point.offset_bytes == kWritePos ? at_metadata : at_data).insert(move.action);
    for (const Action action :
         {Action::emit, Action::burst, Action::batch, Action::drop, Action::lap_part, Action::lap,
          Action::laps, Action::grow, Action::shrink, Action::swap, Action::swap_twice,
          Action::nudge, Action::wake, Action::reserve, Action::overtake, Action::write_over,
          Action::hold})
        EXPECT_TRUE(at_metadata.contains(action)) << describe(action);
    EXPECT_TRUE(at_data.contains(Action::lap));
}

// An event without a written byte that overwrites the event under the read changes none of its
// bytes.
TEST(Moves, WhatIsInFlightComesInEachStateThatAReaderCanTell) {
    const std::vector<AccessPoint> points{access(kWritePos, 1).point};
    std::set<Written> reserved;
    std::set<Written> written_over;
    for (const Move& move : moves_at(points, *find_scenario("wake"), true)) {
        if (move.action == Action::reserve) reserved.insert(move.written);
        if (move.action == Action::write_over) written_over.insert(move.written);
    }
    EXPECT_EQ(reserved, (std::set<Written>{Written::whole, Written::half, Written::header,
                                           Written::nothing}));
    EXPECT_EQ(written_over, (std::set<Written>{Written::whole, Written::half, Written::header}));
}

TEST(Moves, AThreadIsHeldOnlyAgainstOthers) {
    const std::vector<AccessPoint> points{access(kWritePos, 1).point};
    for (const Move& move : moves_at(points, *find_scenario("two-cpus"), false))
        EXPECT_NE(move.action, Action::hold);
}

TEST(Moves, EveryWordOfAWideReadIsTorn) {
    // 64 bytes from 4 bytes before a word's start: split after 4, 12, ... 60 bytes.
    const std::vector<AccessPoint> points{access(4096 + 4, 1, 64).point};
    std::set<std::uint32_t> splits;
    std::set<std::uint64_t> kinds;
    for (const Move& move : moves_at(points, *find_scenario("tear"), false)) {
        EXPECT_EQ(move.action, Action::tear);
        splits.insert(move.point.split_bytes);
        kinds.insert(move.parameter);
    }
    EXPECT_EQ(splits, (std::set<std::uint32_t>{0, 4, 12, 20, 28, 36, 44, 52, 60}));
    EXPECT_EQ(kinds.size(), kTornKinds);
}

TEST(TornSizes, AreWrittenWhereTheHeaderStands) {
    std::string payload(200, 'x');
    put_sizes(payload, 10, {0x01020304, 0x05060708, 0x090a});
    EXPECT_EQ(payload.substr(10, 8), std::string("\x04\x03\x02\x01\x08\x07\x06\x05"));
    EXPECT_EQ(payload.substr(37, 2), std::string("\x0a\x09"));
    EXPECT_EQ(payload[9], 'x');
    EXPECT_EQ(payload[39], 'x');
}

TEST(TornSizes, AreLeftOutWhereThereIsNoRoom) {
    std::string payload(40, 'x');
    put_sizes(payload, 20, {1, 2, 3});
    EXPECT_EQ(payload, std::string(40, 'x'));
}

TEST(Scenarios, HaveNamesOfTheirOwn) {
    std::set<std::string_view> names;
    for (const Scenario& scenario : scenarios()) {
        EXPECT_TRUE(names.insert(scenario.name).second) << scenario.name;
        EXPECT_EQ(find_scenario(scenario.name), &scenario);
    }
    EXPECT_EQ(find_scenario("none of them"), nullptr);
}

TEST(Describe, SaysWhereAndWhat) {
    const Move move{{1, 0, kWritePos, 8, false, 2, 0}, Action::emit, 0};
    EXPECT_EQ(describe(move),
              "before the 2nd read of write_pos (CPU 0, phase 1) one event is emitted");
    const Move torn{{0, 1, 4096 + 16, 32, false, 11, 8}, Action::lap, 0};
    EXPECT_EQ(describe(torn),
              "in the middle of the 11th read of the data at offset 16, after 8 of 32 bytes, "
              "(CPU 1, phase 0) the whole buffer is overwritten");
}

}  // namespace
}  // namespace kmes::conformance
