// SPDX-License-Identifier: MIT
//
// What moves are made of: events that overwrite others in chosen bytes, and the words for a person.
// Knows the producer's side only.
#ifndef KMES_CONFORMANCE_EXPLORER_MOVES_H_
#define KMES_CONFORMANCE_EXPLORER_MOVES_H_

#include <cstdint>
#include <string>

#include "conformance/model/schedule.h"
#include "conformance/stage/rings.h"

namespace kmes::conformance {

bool swaps_buffers(Action action);

// Parameters: of Action::emit, half of the capacity; of those that swap buffers (see Action).
inline constexpr std::uint64_t kLargestEvent = UINT64_MAX;
inline constexpr std::uint64_t kPositionsHigher = 1;
inline constexpr std::uint64_t kPositionsFromZero = 2;

void emit_batch(Rings& rings, std::uint32_t cpu);

// The sizes of an event's header, as a torn read may find them (E7).
struct TornSizes {
    std::uint32_t event_size = 0;
    std::uint32_t header_size = 0;
    std::uint16_t type_len = 0;
};

// How many kinds of torn sizes there are; `kind` of torn_sizes is below it. Kind 0 leaves the
// random bytes of a payload.
inline constexpr std::uint64_t kTornKinds = 21;
TornSizes torn_sizes(std::uint64_t kind, std::uint64_t capacity_bytes);
// At offset `at` of a payload; nothing where they do not fit, or for kind 0's zeros.
void put_sizes(std::string& payload, std::uint64_t at, const TornSizes& sizes);

// In the header of an event whose type has one byte, without and with the type: 29 and 30 in form A
// of the layout. (oracle/layout.h says why these are references.)
extern const std::uint32_t& kFixedHeader;
extern const std::uint32_t& kShortHeader;

std::uint64_t over_header_bytes(const EventSpec& spec);

// The event that covers this offset of the region, or the one that is `further` behind it, among
// those that survive. nullptr: there is none.
const Placement* placement_at(const Buffer& buffer, std::uint64_t region_offset,
                              std::uint64_t further);

// So much, emitted, gives up everything up to the end of that event, and no more.
std::uint64_t bytes_that_give_up(const Buffer& buffer, const Placement& event);

// The offset in the region of the event that covers `region_offset`, among those that survive in
// this buffer; `region_offset` itself if there is none.
std::uint64_t start_of_event_at(const Buffer& buffer, std::uint64_t region_offset);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_MOVES_H_
