// SPDX-License-Identifier: MIT
//
// The bytes of an event (event model, "Event header"). Knows no ring.
#include "conformance/oracle/event.h"

#include "conformance/oracle/layout.h"

namespace kmes::conformance {
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
    bytes.append(kTypeLengthAt - bytes.size(), '\0');  // GUIDs, in forms that have some: none
    append_little_endian(bytes, spec.type.size(), 2);
    bytes.append(spec.type).append(spec.extra_header).append(spec.payload);
    return bytes;
}

}  // namespace kmes::conformance
