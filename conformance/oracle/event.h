// SPDX-License-Identifier: MIT
//
// The bytes of an event by the specification, and its digest by the contract. Written from the
// specification (event model, "Event header") and not from the core. The few constants are repeated
// here on purpose, so that a mistake in the core cannot hide itself.
#ifndef KMES_CONFORMANCE_ORACLE_EVENT_H_
#define KMES_CONFORMANCE_ORACLE_EVENT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "conformance/model/event_spec.h"
#include "conformance/model/layout.h"

namespace kmes::conformance {

// Of this process's form of the layout; oracle/layout.h says why these are references.
extern const std::uint64_t& kHeaderBytesBeforeType;
// The smallest event: a type of one byte, no payload.
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

// The size of header and payload, and of the header alone.
std::uint64_t encoded_bytes(const EventSpec& spec);
std::uint64_t header_bytes(const EventSpec& spec);

// The bytes of the whole event in the data region, little-endian and packed.
std::string encode_event(const EventSpec& spec, std::uint64_t sequence, std::uint16_t cpu);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_ORACLE_EVENT_H_
