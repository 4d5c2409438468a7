// SPDX-License-Identifier: MIT
//
// The cells of two moves, for hand-made courses.
#include "conformance/explorer/cover.h"

#include <gtest/gtest.h>

#include <set>

#include "conformance/oracle/layout.h"

namespace kmes::conformance {
namespace {

AccessPoint at(std::uint64_t offset, std::uint32_t size = 8) {
    AccessPoint point;
    point.offset_bytes = offset;
    point.size_bytes = size;
    return point;
}

AccessPoint of_kind(PointKind kind) {
    AccessPoint point = at(kFutexCounterOffset, 4);
    point.kind = kind;
    return point;
}

// One access for each place that a cell may name.
std::vector<AccessPoint> every_place() {
    return {at(kGenerationOffset),      at(kWritePosOffset),      at(kTailPosOffset),
            at(kFutexCounterOffset, 4), at(kNeedWakeOffset, 1),   at(4096 + 64),
            of_kind(PointKind::wait),   of_kind(PointKind::sleep)};
}

std::vector<Move> every_first() {
    std::vector<Move> moves;
    for (const AccessPoint& point : every_place()) {
        for (const Action action : {Action::emit, Action::lap_part, Action::swap, Action::wake,
                                    Action::lap, Action::swap_twice, Action::drop})
            moves.push_back({point, action});
        moves.push_back({point, Action::reserve, 2, 0, Written::half});
    }
    return moves;
}

TEST(PlaceOf, IsWhatThePointTouches) {
    EXPECT_EQ(place_of(at(kGenerationOffset)), Place::generation);
    EXPECT_EQ(place_of(at(kWritePosOffset, 16)), Place::write_pos);
    EXPECT_EQ(place_of(at(kTailPosOffset)), Place::tail_pos);
    EXPECT_EQ(place_of(at(kNeedWakeOffset, 1)), Place::need_wake);
    EXPECT_EQ(place_of(at(4096)), Place::data);
    EXPECT_EQ(place_of(at(8, 4)), Place::other);
    EXPECT_EQ(place_of(of_kind(PointKind::wait)), Place::wait);
    EXPECT_EQ(place_of(of_kind(PointKind::sleep)), Place::sleep);
}

TEST(Cover, NeedsOneCourseForEachActionAndPlace) {
    Cover cover(false);
    const Move move{at(kWritePosOffset), Action::emit};
    EXPECT_TRUE(cover.needs(move));
    cover.add({move, every_place()});
    EXPECT_FALSE(cover.needs(move));
    EXPECT_TRUE(cover.needs({at(kTailPosOffset), Action::emit}));
    EXPECT_TRUE(cover.needs({at(kWritePosOffset), Action::lap}));
    EXPECT_FALSE(cover.needs({at(kWritePosOffset), Action::emit, 90}));
    EXPECT_FALSE(cover.needs({at(8, 4), Action::emit}));
}

TEST(Cover, EveryTwoValuesOfTwoColumnsMeet) {
    Cover cover(false);
    for (const Move& move : every_first()) cover.add({move, every_place()});
    std::mt19937_64 random(1);
    std::set<std::pair<Action, Action>> actions;
    std::set<std::pair<Place, Place>> places;
    std::set<std::pair<Place, Action>> place_and_action;
    while (const auto moves = cover.next(random)) {
        ASSERT_EQ(moves->size(), 2u);
        const Move& first = moves->front();
        const Move& second = moves->back();
        actions.emplace(first.action, second.action);
        places.emplace(place_of(first.point), place_of(second.point));
        place_and_action.emplace(place_of(first.point), second.action);
    }
    constexpr std::size_t kFirstActions = 8;
    constexpr std::size_t kSecondActions = 15;  // includes a swap twice
    constexpr std::size_t kPlaces = 8;
    EXPECT_EQ(actions.size(), kFirstActions * kSecondActions);
    EXPECT_EQ(places.size(), kPlaces * kPlaces);
    EXPECT_EQ(place_and_action.size(), kPlaces * kSecondActions);
    EXPECT_EQ(cover.taken(), cover.size());
    EXPECT_LT(cover.size(), 200u);
}

TEST(Cover, TheProductHasEveryCell) {
    Cover cover(true);
    for (const Move& move : every_first()) cover.add({move, every_place()});
    std::mt19937_64 random(1);
    std::set<std::vector<Move>> cells;
    while (auto moves = cover.next(random)) cells.insert(std::move(*moves));
    EXPECT_EQ(cells.size(), std::size_t{8} * 8 * 16 * 8);
}

TEST(Cover, ItsPartsHaveEveryCellOnce) {
    constexpr std::uint32_t kTotal = 3;
    std::set<std::vector<Move>> cells;
    std::size_t taken = 0;
    for (std::uint32_t index = 0; index < kTotal; ++index) {
        Cover cover(true, {index, kTotal});
        for (const Move& move : every_first()) cover.add({move, every_place()});
        std::mt19937_64 random(1);
        while (auto moves = cover.next(random)) cells.insert(std::move(*moves));
        taken += cover.taken();
    }
    EXPECT_EQ(cells.size(), std::size_t{8} * 8 * 16 * 8);
    EXPECT_EQ(taken, cells.size());
}

TEST(Cover, ACellWithoutACourseOrAnAccessIsLeftOut) {
    Cover cover(true);
    std::mt19937_64 random(1);
    cover.add({{at(kWritePosOffset), Action::emit}, {at(kTailPosOffset)}});
    std::size_t count = 0;
    while (const auto moves = cover.next(random)) {
        EXPECT_EQ(moves->front().point, at(kWritePosOffset));
        EXPECT_EQ(moves->back().point, at(kTailPosOffset));
        ++count;
    }
    EXPECT_EQ(count, 16u);
    EXPECT_EQ(cover.taken(), 16u);
}

}  // namespace
}  // namespace kmes::conformance
