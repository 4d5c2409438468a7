// SPDX-License-Identifier: MIT
//
// The bytes of an event (event model, "Event header"). Knows no ring.
#include "conformance/oracle/event.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kmes::conformance {
namespace {

// Payloads are generated a word at a time, its low byte first.
constexpr std::size_t kWordBytes = sizeof(std::uint64_t);
static_assert(std::endian::native == std::endian::little);

void append_little_endian(std::string& bytes, std::uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
}

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

std::uint64_t fnv1a(std::string_view bytes) {
    std::uint64_t hash = kFnvOffsetBasis;
    for (const char byte : bytes) hash = fnv1a_step(hash, static_cast<std::uint8_t>(byte));
    return hash;
}

std::uint64_t header_bytes(const EventSpec& spec) {
    return kHeaderBytesBeforeType + spec.type.size() + spec.extra_header.size();
}

std::uint64_t encoded_bytes(const EventSpec& spec) {
    return header_bytes(spec) + spec.payload.size();
}

std::string encode_event(const EventSpec& spec, std::uint64_t sequence, std::uint16_t cpu) {
    std::string bytes;
    bytes.reserve(encoded_bytes(spec));
    append_little_endian(bytes, encoded_bytes(spec), 4);  // event_size
    append_little_endian(bytes, header_bytes(spec), 4);   // header_size
    append_little_endian(bytes, spec.timestamp, 8);
    append_little_endian(bytes, sequence, 8);
    append_little_endian(bytes, cpu, 2);
    append_little_endian(bytes, spec.origin, 1);
    append_little_endian(bytes, spec.type.size(), 2);
    bytes.append(spec.type).append(spec.extra_header).append(spec.payload);
    return bytes;
}

}  // namespace kmes::conformance
