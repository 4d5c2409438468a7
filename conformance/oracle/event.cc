// SPDX-License-Identifier: MIT
//
// The bytes of an event (event model, "Event header"). Knows no ring.
#include "conformance/oracle/event.h"

#include "conformance/oracle/layout.h"

namespace kmes::conformance {
namespace {

struct Numbers {
    std::uint64_t header_bytes;
    std::uint64_t least_event_bytes;
    std::uint64_t metadata_bytes;
};
constinit Numbers numbers{};

// In forms A to D. 101: before every other initialisation.
[[gnu::constructor(101)]] void set_numbers() {
    numbers.header_bytes = of_layout({29, 29, 77, 77});
    numbers.least_event_bytes = numbers.header_bytes + 1;
    numbers.metadata_bytes = of_layout({4096, 8192, 8192, 8192});
}

}  // namespace

constinit const std::uint64_t& kHeaderBytesBeforeType = numbers.header_bytes;
constinit const std::uint64_t& kLeastEventBytes = numbers.least_event_bytes;
constinit const std::uint64_t& kMetadataBytes = numbers.metadata_bytes;
namespace {

void append_little_endian(std::string& bytes, std::uint64_t value, unsigned size) {
    for (unsigned i = 0; i < size; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
}

}  // namespace

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
    bytes.append(kTypeLengthAt - bytes.size(), '\0');  // GUIDs, where the form has some: none
    append_little_endian(bytes, spec.type.size(), 2);
    bytes.append(spec.type).append(spec.extra_header).append(spec.payload);
    return bytes;
}

}  // namespace kmes::conformance
