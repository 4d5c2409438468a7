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

// In forms A to D of the layout (docs/layouts.md).
inline const std::uint64_t kHeaderBytesBeforeType = of_layout({29, 29, 77, 77});
// The least event: a type of one byte, no payload.
inline const std::uint64_t kLeastEventBytes = kHeaderBytesBeforeType + 1;
inline const std::uint64_t kMetadataBytes = of_layout({4096, 8192, 8192, 8192});
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
