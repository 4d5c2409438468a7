// SPDX-License-Identifier: MIT
//
// Every move is in one part, and no part is much larger than another one.
#include "conformance/explorer/parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

namespace kmes::conformance {
namespace {

std::vector<Move> many_moves() {
    std::vector<Move> moves;
    for (std::uint64_t offset = 64; offset < 144; offset += 8) {
        for (std::uint64_t occurrence = 1; occurrence <= 10; ++occurrence) {
            for (const Action action : {Action::emit, Action::lap, Action::swap, Action::wake}) {
                Move move;
                move.point.offset_bytes = offset;
                move.point.size_bytes = 8;
                move.point.occurrence = occurrence;
                move.action = action;
                moves.push_back(move);
            }
        }
    }
    return moves;
}

TEST(Parts, EveryMoveIsInOneOfThem) {
    const std::vector<Move> moves = many_moves();
    for (const std::uint32_t total : {1u, 2u, 3u, 8u, 100u}) {
        for (const Move& move : moves) {
            std::uint32_t parts = 0;
            for (std::uint32_t index = 0; index < total; ++index)
                parts += is_in_part(move, {index, total});
            EXPECT_EQ(parts, 1u);
        }
    }
}

TEST(Parts, AreOfAboutOneSize) {
    const std::vector<Move> moves = many_moves();
    constexpr std::uint32_t kTotal = 8;
    for (std::uint32_t index = 0; index < kTotal; ++index) {
        const auto count = static_cast<std::size_t>(std::ranges::count_if(
            moves, [&](const Move& move) { return is_in_part(move, {index, kTotal}); }));
        EXPECT_GT(count, moves.size() / kTotal / 2) << index;
        EXPECT_LT(count, moves.size() / kTotal * 2) << index;
    }
}

TEST(Parts, EveryFieldOfAMoveCounts) {
    const ExplorePart half{0, 2};
    std::vector<Move> others(64);
    for (std::size_t i = 0; i < others.size(); ++i) others[i].parameter = i;
    EXPECT_TRUE(std::ranges::any_of(others, [&](const Move& move) {
        return is_in_part(move, half) != is_in_part(others[0], half);
    }));
}

TEST(Parts, NumberTheirPlaysWithoutAGapOrADouble) {
    std::set<std::uint64_t> plays;
    for (std::uint32_t index = 0; index < 3; ++index) {
        for (std::uint64_t play = 0; play < 4; ++play) plays.insert(play_of_part(play, {index, 3}));
    }
    EXPECT_EQ(plays.size(), 12u);
    EXPECT_EQ(*plays.rbegin(), 11u);
    EXPECT_EQ(play_of_part(7, {}), 7u);
}

}  // namespace
}  // namespace kmes::conformance
