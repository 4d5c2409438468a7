// SPDX-License-Identifier: MIT
//
// Events that describe themselves: who emitted it and as which one stands in the type, and every
// other byte of it follows from that. So whoever is handed an event can tell, alone, whether it is
// whole. Knows no ring and no thread.
#ifndef KMES_PROPS_THREADS_PAYLOAD_H_
#define KMES_PROPS_THREADS_PAYLOAD_H_

#include <cstdint>
#include <string>

#include "kmes/event.h"

namespace kmes::props {

// Emitter 0 is the one that ends rounds; its events are always small.
struct EventKey {
    std::uint32_t emitter = 0;
    std::uint32_t number = 0;
    bool operator==(const EventKey&) const = default;
};

enum class Sizes {
    kTiny,   // at most 8 bytes of payload
    kSmall,  // at most 200
    kMixed,  // now and then thousands, and what is over 50 % of a small ring
};

// What an event of 64 KiB or a larger ring always accepts.
inline constexpr std::size_t kAlwaysFitsBytes = 30000;

struct EventText {
    std::string type;
    std::string payload;
    std::uint8_t origin = 0;
};

// The one event of this key in a run of `seed`.
EventText describe_event(std::uint64_t seed, Sizes sizes, EventKey key);

// Whether `view`, whose bytes nobody changes any more, is the event that its type says. Empty if it
// is; else what is wrong. *key is set as far as the type says it.
std::string check_event(std::uint64_t seed, Sizes sizes, const kmes_event_view& view,
                        EventKey* key);

// Timestamps that can be told from torn ones, too: the clock of a run, and its check.
std::uint64_t timestamp_of(std::uint64_t tick);
bool timestamp_is_whole(std::uint64_t timestamp);

std::uint64_t mix_bits(std::uint64_t value);  // splitmix64's finisher

}  // namespace kmes::props

#endif  // KMES_PROPS_THREADS_PAYLOAD_H_
