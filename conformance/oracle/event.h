// SPDX-License-Identifier: MIT
//
// An event as the specification has it: what was asked for, what became of it, and its bytes.
// Written from the text (event model, "Event header"), not from the core: the few constants are
// written down here a second time on purpose, so that a mistake in the core cannot hide itself.
#ifndef KMES_CONFORMANCE_ORACLE_EVENT_H_
#define KMES_CONFORMANCE_ORACLE_EVENT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kmes::conformance {

inline constexpr std::uint64_t kHeaderBytesBeforeType = 29;
// The least event: a type of one byte, no payload.
inline constexpr std::uint64_t kLeastEventBytes = kHeaderBytesBeforeType + 1;
inline constexpr std::uint64_t kMetadataBytes = 4096;
inline constexpr std::string_view kEndEventType = "kmes.conformance.end";

// What the driver has emitted. `extra_header` are bytes between the type and the payload (a later
// version of the format may have them; v0.20 has none).
struct EventSpec {
    std::string type;
    std::string payload;
    std::uint64_t timestamp = 0;  // CLOCK_REALTIME, ns
    std::uint8_t origin = 0;
    std::string extra_header;
    // generate_payload() made the payload from this seed: then it need not be kept to be known.
    std::optional<std::uint64_t> payload_seed = std::nullopt;
};

// splitmix64: any seed is as good as another, and a run is the same everywhere. Moves `state` on.
std::uint64_t next_random(std::uint64_t& state);

// Pseudo-random bytes, eight from each random number.
std::string generate_payload(std::uint64_t& state, std::size_t bytes);
// generate_payload makes exactly these from `seed`.
bool is_generated(std::string_view payload, std::uint64_t seed);

// 64-bit FNV-1a, as the contract's <digest>; and one byte of it.
inline constexpr std::uint64_t kFnvOffsetBasis = 0xcbf29ce484222325;
inline constexpr std::uint64_t kFnvPrime = 0x100000001b3;
constexpr std::uint64_t fnv1a_step(std::uint64_t hash, std::uint8_t byte) {
    return (hash ^ byte) * kFnvPrime;
}
std::uint64_t fnv1a(std::string_view bytes);

// Header and payload in bytes, and the header alone.
std::uint64_t encoded_bytes(const EventSpec& spec);
std::uint64_t header_bytes(const EventSpec& spec);

// The whole event, little-endian and packed, as it stands in the data region.
std::string encode_event(const EventSpec& spec, std::uint64_t sequence, std::uint16_t cpu);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_ORACLE_EVENT_H_
