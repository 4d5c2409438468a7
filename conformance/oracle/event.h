// SPDX-License-Identifier: MIT
//
// The bytes of an event as the specification has them, and its digest in the contract. Written from
// the text (event model, "Event header"), not from the core: the few constants are written down
// here a second time on purpose, so that a mistake in the core cannot hide itself.
#ifndef KMES_CONFORMANCE_ORACLE_EVENT_H_
#define KMES_CONFORMANCE_ORACLE_EVENT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "conformance/model/event_spec.h"
#include "conformance/model/layout.h"

namespace kmes::conformance {

// Of the form of the layout that this process has; oracle/layout.h says why these are references.
extern const std::uint64_t& kHeaderBytesBeforeType;
// The least event: a type of one byte, no payload.
extern const std::uint64_t& kLeastEventBytes;
extern const std::uint64_t& kMetadataBytes;
inline constexpr std::string_view kEndEventType = "kmes.conformance.end";

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
