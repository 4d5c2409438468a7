// SPDX-License-Identifier: MIT
//
// SHA-256 (FIPS 180-4).
#ifndef KMES_CONFORMANCE_REPORT_SHA256_H_
#define KMES_CONFORMANCE_REPORT_SHA256_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace kmes::conformance {

std::array<std::uint8_t, 32> sha256(std::string_view bytes);

// The hash as 64 hexadecimal digits, lower-case.
std::string sha256_hex(std::string_view bytes);

// The hash in Base64, the format of policies in HTML documents.
std::string sha256_base64(std::string_view bytes);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_SHA256_H_
