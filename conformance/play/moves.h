// SPDX-License-Identifier: MIT
//
// The parts of moves: events that overwrite others in chosen bytes, and descriptions for people.
// Knows the producer's side only.
#ifndef KMES_CONFORMANCE_PLAY_MOVES_H_
#define KMES_CONFORMANCE_PLAY_MOVES_H_

#include <cstdint>
#include <string>

#include "conformance/model/schedule.h"
#include "conformance/stage/rings.h"

namespace kmes::conformance {

bool swaps_buffers(Action action);

// Parameters: for Action::emit, half of the capacity; for actions that swap buffers, see Action.
inline constexpr std::uint64_t kLargestEvent = UINT64_MAX;
inline constexpr std::uint64_t kPositionsHigher = 1;
inline constexpr std::uint64_t kPositionsFromZero = 2;

void emit_batch(Rings& rings, std::uint32_t cpu);

// The sizes in an event's header that a torn read may find (E7).
struct TornSizes {
    std::uint32_t event_size = 0;
    std::uint32_t header_size = 0;
    std::uint16_t type_len = 0;
};

// The number of kinds of torn sizes; the `kind` of torn_sizes is smaller. Kind 0 leaves the random
// bytes of a payload.
inline constexpr std::uint64_t kTornKinds = 21;
TornSizes torn_sizes(std::uint64_t kind, std::uint64_t capacity_bytes);
// Writes the sizes at offset `at` of a payload. Does nothing if they do not fit, or for the zeros
// of kind 0.
void put_sizes(std::string& payload, std::uint64_t at, const TornSizes& sizes);

// The header size of an event with a type of one byte, without and with the type: 29 and 30 in form
// A of the layout. (oracle/layout.h says why these are references.)
extern const std::uint32_t& kFixedHeader;
extern const std::uint32_t& kShortHeader;

std::uint64_t over_header_bytes(const EventSpec& spec);

// Returns the surviving event that covers this offset of the region, or the one `further` events
// later. nullptr: there is none.
const Placement* placement_at(const Buffer& buffer, std::uint64_t region_offset,
                              std::uint64_t further);

// Returns the size of an emission that gives up everything up to the end of that event, and no
// more.
std::uint64_t bytes_that_give_up(const Buffer& buffer, const Placement& event);

// Returns the region offset of the surviving event in this buffer that covers `region_offset`, or
// `region_offset` itself if there is none.
std::uint64_t start_of_event_at(const Buffer& buffer, std::uint64_t region_offset);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_MOVES_H_
