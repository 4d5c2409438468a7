// SPDX-License-Identifier: MIT
//
// Which mistake makes this digest out of that event: what a newcomer's adapter gets wrong, tried
// one by one. Knows no report and no testee.
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

// What `field`, which is not the right digest of this event, is: "FNV-1 of the payload (...)",
// "the right digest in upper case". Empty: nothing that is known.
std::string explain_digest(std::string_view field, const EventSpec& event, std::uint64_t sequence,
                           std::uint16_t cpu);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_ORACLE_DIGEST_MISTAKE_H_
