// SPDX-License-Identifier: MIT
//
// See pairs.h.
#include "conformance/explorer/pairs.h"

#include <algorithm>

#include "conformance/explorer/cover.h"

namespace kmes::conformance {

bool is_second_of_pairs(Action action, const AccessPoint& point) {
    return action == Action::lap_part || place_of(point) != Place::data;
}

FirstMoves first_of_pairs(const std::vector<Move>& all, const Distinct& distinct,
                          const std::set<AccessPoint>& points) {
    FirstMoves firsts;
    for (const Move& move : all) {
        if (move.parameter != 0 || !points.contains(move.point) ||
            std::ranges::find(kPairActions, move.action) == kPairActions.end())
            continue;
        // The move that stays may be at an access that is none of the points.
        const auto same = distinct.same_as.find(move);
        firsts.with_later_ones.insert(same == distinct.same_as.end() ? move : same->second);
        for (const Action action : kPairActions) {
            if (is_second_of_pairs(action, move.point))
                firsts.at_one_point.push_back({move, Move{move.point, action}});
        }
    }
    return firsts;
}

}  // namespace kmes::conformance
