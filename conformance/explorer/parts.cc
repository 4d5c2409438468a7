// SPDX-License-Identifier: MIT
//
// See parts.h.
#include "conformance/explorer/parts.h"

#include <initializer_list>

namespace kmes::conformance {

namespace {

// The finaliser of MurmurHash3: every bit of the value changes every bit of the result.
std::uint64_t mixed(std::uint64_t value) {
    value = (value ^ (value >> 33)) * 0xff51afd7ed558ccdull;
    value = (value ^ (value >> 33)) * 0xc4ceb9fe1a85ec53ull;
    return value ^ (value >> 33);
}

std::uint64_t hash_of(const Move& move) {
    const AccessPoint& point = move.point;
    std::uint64_t hash = 0;
    for (const std::uint64_t value : {
             std::uint64_t{point.phase},
             std::uint64_t{point.cpu},
             point.offset_bytes,
             std::uint64_t{point.size_bytes},
             std::uint64_t{point.is_write},
             point.occurrence,
             std::uint64_t{point.split_bytes},
             static_cast<std::uint64_t>(point.kind),
             static_cast<std::uint64_t>(move.action),
             move.parameter,
             std::uint64_t{move.further},
             static_cast<std::uint64_t>(move.written),
         })
        hash = mixed(hash + value + 0x9e3779b97f4a7c15ull);
    return hash;
}

}  // namespace

bool is_in_part(const Move& move, const ExplorePart& part) {
    return part.total <= 1 || hash_of(move) % part.total == part.index;
}

}  // namespace kmes::conformance
