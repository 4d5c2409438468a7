// SPDX-License-Identifier: MIT
//
// Finds the reason of a wrong digest: tries the usual mistakes of a new adapter one by one.
// Knows no report and no testee.
#ifndef KMES_CONFORMANCE_ORACLE_DIGEST_MISTAKE_H_
#define KMES_CONFORMANCE_ORACLE_DIGEST_MISTAKE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "conformance/oracle/event.h"

namespace kmes::conformance {

// 16 lower-case hex digits.
std::string digest_text(std::uint64_t digest);

// Bytes in lower-case hex.
std::string hex_of(std::string_view bytes);

// Says how `field`, which is a wrong digest of this event, was computed: "FNV-1 of the payload
// (...)", "the correct digest in upper case". Empty if no known mistake gives it.
std::string explain_digest(std::string_view field, const EventSpec& event, std::uint64_t sequence,
                           std::uint16_t cpu);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_ORACLE_DIGEST_MISTAKE_H_
