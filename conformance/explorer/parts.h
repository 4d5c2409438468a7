// SPDX-License-Identifier: MIT
//
// Which part of a search a shard plays. Every move is in one part, and the part follows from the
// move alone. The baselines of two machines may differ in an access, and their parts still fit.
#ifndef KMES_CONFORMANCE_EXPLORER_PARTS_H_
#define KMES_CONFORMANCE_EXPLORER_PARTS_H_

#include <cstdint>

#include "conformance/model/schedule.h"
#include "conformance/model/settings.h"

namespace kmes::conformance {

bool is_in_part(const Move& move, const ExplorePart& part);

// Number `play` of this part in a numbering that all parts share.
constexpr std::uint64_t play_of_part(std::uint64_t play, const ExplorePart& part) {
    return play * part.total + part.index;
}

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_PARTS_H_
