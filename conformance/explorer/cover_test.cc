// SPDX-License-Identifier: MIT
//
// The cells of two moves, for hand-made courses.
#include "conformance/explorer/cover.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <set>
#include <tuple>

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

// The values of the four columns of a cell.
using Value = std::tuple<Action, std::uint64_t, Written, Place>;
// Which columns, and their values.
using Pair = std::tuple<int, int, Value, Value>;

std::set<Pair> pairs_of(const std::vector<Move>& moves) {
    std::vector<Value> values;
    for (const Move& move : moves) {
        values.emplace_back(move.action, move.parameter, move.written, Place::other);
        values.emplace_back(Action::nothing, 0, Written::whole, place_of(move.point));
    }
    std::set<Pair> pairs;
    for (int one = 0; one < 4; ++one) {
        for (int other = one + 1; other < 4; ++other)
            pairs.emplace(one, other, values[static_cast<std::size_t>(one)],
                          values[static_cast<std::size_t>(other)]);
    }
    return pairs;
}

std::set<Pair> pairs_of_all(const std::vector<std::vector<Move>>& all) {
    std::set<Pair> pairs;
    for (const std::vector<Move>& moves : all) pairs.merge(pairs_of(moves));
    return pairs;
}

// A consumer for a cover: whether the access of a second move comes in the course of a first one.
using HasAccess = std::function<bool(const Move& first, Place second)>;
// The play of a cell: whether both moves took place.
using Plays = std::function<bool(const std::vector<Move>& moves)>;

void add_courses(Cover& cover, const std::vector<Move>& firsts, const HasAccess& has_access) {
    for (const Move& first : firsts) {
        Branch branch{first, {}};
        for (const AccessPoint& point : every_place()) {
            if (has_access(first, place_of(point))) branch.points.push_back(point);
        }
        cover.add(branch);
    }
}

// Returns the moves of the cells that are played.
std::vector<std::vector<Move>> play_all(
    Cover& cover, const Plays& plays = [](const auto&) { return true; }) {
    std::mt19937_64 random(1);
    std::vector<std::vector<Move>> played;
    while (const auto cell = cover.next(random)) {
        const bool is_shown = plays(cell->moves);
        cover.note(cell->index, is_shown);
        if (is_shown) played.push_back(cell->moves);
    }
    return played;
}

// Every pair that some cell of the product has, for this consumer.
std::set<Pair> possible_pairs(const std::vector<Move>& firsts, const HasAccess& has_access) {
    Cover product(true);
    add_courses(product, firsts, has_access);
    return pairs_of_all(play_all(product));
}

bool always(const Move& /*first*/, Place /*second*/) {
    return true;
}

constexpr std::size_t kAllPairs = 8 * 8 + 8 * 16 + 8 * 8 + 8 * 16 + 8 * 8 + 16 * 8;

TEST(Cover, EveryTwoValuesOfTwoColumnsMeet) {
    Cover cover(false);
    add_courses(cover, every_first(), always);
    const std::set<Pair> pairs = pairs_of_all(play_all(cover));
    EXPECT_EQ(pairs.size(), kAllPairs);
    EXPECT_EQ(pairs, possible_pairs(every_first(), always));
    EXPECT_EQ(cover.tally().all, kAllPairs);
    EXPECT_EQ(cover.tally().shown, kAllPairs);
    EXPECT_EQ(cover.tally().without_access, 0u);
    EXPECT_LT(cover.tally().cells_taken, 200u);
}

// If a consumer makes an access in some courses only, the pairs of that access are in the cells of
// those courses.
TEST(Cover, APairMeetsInAnotherCellIfOneHasNoAccess) {
    const auto has_access = [](const Move& first, Place second) {
        const bool is_after_a_swap = first.action == Action::swap;
        if (second == Place::counter) return place_of(first.point) == Place::wait;
        return second == Place::tail_pos ? is_after_a_swap : second != Place::need_wake;
    };
    std::vector<Move> firsts = every_first();
    std::erase_if(firsts, [](const Move& first) {
        return first.action == Action::drop && place_of(first.point) != Place::sleep;
    });
    Cover cover(false);
    add_courses(cover, firsts, has_access);
    const std::set<Pair> pairs = pairs_of_all(play_all(cover));
    EXPECT_EQ(pairs, possible_pairs(firsts, has_access));
    EXPECT_EQ(cover.tally().shown, pairs.size());
    EXPECT_EQ(cover.tally().without_access, kAllPairs - pairs.size());
    EXPECT_GT(cover.tally().without_access, 0u);
}

// A play may end without its second move, because threads race.
TEST(Cover, APairMeetsInAnotherCellIfAPlayDoesNotShowIt) {
    int plays = 0;
    const auto every_second = [&plays](const std::vector<Move>&) { return ++plays % 2 == 0; };
    Cover cover(false);
    add_courses(cover, every_first(), always);
    EXPECT_EQ(pairs_of_all(play_all(cover, every_second)).size(), kAllPairs);
    EXPECT_EQ(cover.tally().shown, kAllPairs);
    Cover never_played(false);
    add_courses(never_played, every_first(), always);
    EXPECT_TRUE(play_all(never_played, [](const auto&) { return false; }).empty());
    EXPECT_EQ(never_played.tally().shown, 0u);
    EXPECT_EQ(never_played.tally().without_access, 0u);
}

// The last courses are still being recorded while the first cells are played.
TEST(Cover, ACourseThatComesLateIsNotLeftOut) {
    Cover cover(false);
    std::vector<std::vector<Move>> played;
    for (const Move& first : every_first()) {
        add_courses(cover, {first}, always);
        for (std::vector<Move>& moves : play_all(cover)) played.push_back(std::move(moves));
    }
    EXPECT_EQ(pairs_of_all(played).size(), kAllPairs);
}

TEST(Cover, ThePartsTogetherHaveEveryPair) {
    constexpr std::uint32_t kTotal = 3;
    std::set<Pair> pairs;
    std::size_t all = 0;
    for (std::uint32_t index = 0; index < kTotal; ++index) {
        Cover cover(false, {index, kTotal});
        add_courses(cover, every_first(), always);
        const std::vector<std::vector<Move>> played = play_all(cover);
        EXPECT_LT(played.size(), 130u);
        pairs.merge(pairs_of_all(played));
        all += cover.tally().all;
        EXPECT_EQ(cover.tally().shown, cover.tally().all);
    }
    EXPECT_EQ(all, kAllPairs);
    EXPECT_EQ(pairs.size(), kAllPairs);
}

// The singles at the data are only those that overwrite, and others are left out as equivalent.
TEST(Cover, ThePreludesAreTheFirstMovesThatTheSinglesLack) {
    const Cover cover(false);
    std::vector<Move> singles = every_first();
    EXPECT_TRUE(cover.preludes(every_place(), singles).empty());
    const auto lacks = [](const Move& move) {
        return place_of(move.point) == Place::data || move.action == Action::wake;
    };
    std::vector<Move> lacking;
    std::ranges::copy_if(singles, std::back_inserter(lacking), lacks);
    std::erase_if(singles, lacks);
    std::vector<AccessPoint> points = every_place();
    points.push_back(at(8, 4));      // no place of a cell
    points.push_back(at(4096 + 8));  // a second access to the data
    std::vector<Move> preludes = cover.preludes(points, singles);
    std::ranges::sort(preludes);
    std::ranges::sort(lacking);
    EXPECT_EQ(preludes, lacking);
}

TEST(Cover, TheProductHasEveryCell) {
    Cover cover(true);
    add_courses(cover, every_first(), always);
    const auto played = play_all(cover);
    EXPECT_EQ(std::set(played.begin(), played.end()).size(), std::size_t{8} * 8 * 16 * 8);
    EXPECT_EQ(cover.tally().shown, cover.tally().all);
}

TEST(Cover, ItsPartsHaveEveryCellOnce) {
    constexpr std::uint32_t kTotal = 3;
    std::set<std::vector<Move>> cells;
    std::size_t taken = 0;
    for (std::uint32_t index = 0; index < kTotal; ++index) {
        Cover cover(true, {index, kTotal});
        add_courses(cover, every_first(), always);
        for (std::vector<Move>& moves : play_all(cover)) cells.insert(std::move(moves));
        taken += cover.tally().cells_taken;
    }
    EXPECT_EQ(cells.size(), std::size_t{8} * 8 * 16 * 8);
    EXPECT_EQ(taken, cells.size());
}

TEST(Cover, ACellWithoutACourseOrAnAccessIsLeftOut) {
    Cover cover(true);
    cover.add({{at(kWritePosOffset), Action::emit}, {at(kTailPosOffset)}});
    const auto played = play_all(cover);
    for (const std::vector<Move>& moves : played) {
        EXPECT_EQ(moves.front().point, at(kWritePosOffset));
        EXPECT_EQ(moves.back().point, at(kTailPosOffset));
    }
    EXPECT_EQ(played.size(), 16u);
    EXPECT_EQ(cover.tally().cells_taken, 16u);
    EXPECT_EQ(cover.tally().without_access, cover.tally().all - 16);
}

}  // namespace
}  // namespace kmes::conformance
