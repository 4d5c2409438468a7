// SPDX-License-Identifier: MIT
//
// The header of the oldest event, overwritten by bytes that look like a header (E7), as actions of
// a row with one CPU (steps.h). Knows no case.
#ifndef KMES_CONFORMANCE_PLAY_TORN_HEADER_H_
#define KMES_CONFORMANCE_PLAY_TORN_HEADER_H_

#include <cstdint>

#include "conformance/play/steps.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {

// The events that follow the one that is overwritten.
inline constexpr std::uint64_t kFollowersOfVictim = 7;

// Emits an event of kVictimBytes at the beginning of the data region, and followers that leave room
// for one header at its end.
Steps victim_and_followers();

// Overwrites the header of that event by itself with a larger event_size, which claims `less` bytes
// less than times/parts of a follower in addition.
struct ForgeLarger {
    std::uint64_t times;
    std::uint64_t parts;
    std::uint64_t less;

    void operator()(Stage& stage) const;
};

// Overwrites the header of that event by itself with a sequence number that would be wrong in a
// whole event: the last delivered one, `back` numbers before that, or 0, which is never assigned.
struct ForgeNumber {
    std::uint64_t back;

    void operator()(Stage& stage) const;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_TORN_HEADER_H_
