// SPDX-License-Identifier: MIT
//
// The pairs of `deep`: two moves, each with one of four actions, at every two points. Pure.
#ifndef KMES_CONFORMANCE_EXPLORER_PAIRS_H_
#define KMES_CONFORMANCE_EXPLORER_PAIRS_H_

#include <array>
#include <set>
#include <vector>

#include "conformance/explorer/equivalence.h"
#include "conformance/model/schedule.h"

namespace kmes::conformance {

inline constexpr std::array kPairActions{Action::emit, Action::lap_part, Action::swap,
                                         Action::wake};

// Whether a pair ends with this action at this point. Before an access to the data only an action
// that overwrites can make a difference.
bool is_second_of_pairs(Action action, const AccessPoint& point);

struct FirstMoves {
    // Single moves that stay. Pairs have their second move at a later point of the course of one.
    std::set<Move> with_later_ones;
    // Two moves at one point. They also stand for the pairs of the moves that were left out: see
    // without_equivalent.
    std::vector<std::vector<Move>> at_one_point;
};
// `all`: the single moves before any was left out. `points`: where the first moves of pairs are.
FirstMoves first_of_pairs(const std::vector<Move>& all, const Distinct& distinct,
                          const std::set<AccessPoint>& points);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_PAIRS_H_
