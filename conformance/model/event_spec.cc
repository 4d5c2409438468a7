// SPDX-License-Identifier: MIT
//
// Payloads from a seed.
#include "conformance/model/event_spec.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kmes::conformance {

namespace {

// Payloads are generated a word at a time, its low byte first.
constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
static_assert(std::endian::native == std::endian::little);

}  // namespace

std::uint64_t next_random(std::uint64_t& state) {
    std::uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

std::string generate_payload(std::uint64_t& state, std::size_t bytes) {
    std::string payload(bytes, '\0');
    for (std::size_t at = 0; at < bytes; at += kWordBytes) {
        const std::uint64_t word = next_random(state);
        std::memcpy(&payload[at], &word, std::min(kWordBytes, bytes - at));
    }
    return payload;
}

bool is_generated(std::string_view payload, std::uint64_t seed) {
    for (; payload.size() >= kWordBytes; payload.remove_prefix(kWordBytes)) {
        std::uint64_t word = 0;
        std::memcpy(&word, payload.data(), kWordBytes);  // one load
        if (word != next_random(seed)) return false;
    }
    const std::uint64_t last = next_random(seed);
    return std::memcmp(payload.data(), &last, payload.size()) == 0;
}

}  // namespace kmes::conformance
