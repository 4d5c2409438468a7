// SPDX-License-Identifier: MIT
//
// Self-describing events: the type has the emitter and its number, and determines every other byte.
// So a reader can tell from an event alone whether it is whole. Knows no ring and no thread.
#ifndef KMES_PROPS_THREADS_PAYLOAD_H_
#define KMES_PROPS_THREADS_PAYLOAD_H_

#include <cstdint>
#include <string>

#include "kmes/event.h"

namespace kmes::props {

// Emitter 0 ends rounds; its events are always small.
struct EventKey {
    std::uint32_t emitter = 0;
    std::uint32_t number = 0;
    bool operator==(const EventKey&) const = default;
};

enum class Sizes {
    kTiny,   // at most 8 bytes of payload
    kSmall,  // at most 200
    kMixed,  // sometimes thousands, also over 50 % of a small ring
};

// A ring of 64 KiB or more always accepts an event of this size.
inline constexpr std::size_t kAlwaysFitsBytes = 30000;

struct EventText {
    std::string type;
    std::string payload;
    std::uint8_t origin = 0;
};

// The one event of this key in a run of `seed`.
EventText describe_event(std::uint64_t seed, Sizes sizes, EventKey key);

// Checks whether `view` is the event that its type says. No thread may change its bytes any more.
// Returns an empty string, or the mistake. Sets *key to the values in the type.
std::string check_event(std::uint64_t seed, Sizes sizes, const kmes_event_view& view,
                        EventKey* key);

// Timestamps in which torn ones can be detected, too: the clock of a run, and its check.
std::uint64_t timestamp_of(std::uint64_t tick);
bool timestamp_is_whole(std::uint64_t timestamp);

std::uint64_t mix_bits(std::uint64_t value);  // splitmix64's finisher

}  // namespace kmes::props

#endif  // KMES_PROPS_THREADS_PAYLOAD_H_
