// SPDX-License-Identifier: MIT
//
// Finds the origin of a torn payload's bytes, as far as a digest shows it: a misread header,
// another event, or a mixture with the overwriting bytes. Only for the message: a torn event is a
// failure in any case.
#include <algorithm>
#include <vector>

#include "conformance/oracle/judge_internal.h"

namespace kmes::conformance::internal {
namespace {

// The inverse of the prime modulo 2^64, which an odd number has. Newton's iteration doubles the
// number of correct bits; a number is its own inverse in the lowest three.
constexpr std::uint64_t inverse_of(std::uint64_t odd) {
    std::uint64_t inverse = odd;
    for (int bits = 3; bits < 64; bits *= 2) inverse *= 2 - odd * inverse;
    return inverse;
}
constexpr std::uint64_t kInverse = inverse_of(kFnvPrime);
static_assert(kFnvPrime * kInverse == 1);

std::string explain_by_header(const Event& event, const Record& record) {
    if (!is_header_misread(event, record)) return {};
    const std::uint64_t type_end = kHeaderBytesBeforeType + event.type.size();
    return "the payload was read from byte " + std::to_string(type_end) + " of the event (" +
           std::to_string(kHeaderBytesBeforeType) + " + type_len), but begins at header_size, " +
           std::to_string(type_end + event.extra_header.size());
}

std::string explain_by_other(const History& history, std::uint32_t cpu, const Event& event,
                             const Record& record) {
    for (const Event& other : history.events_of(cpu)) {
        if (other.dropped || other.sequence == event.sequence) continue;
        if (other.length != record.length || other.digest() != record.digest) continue;
        return "the payload is that of event " + std::to_string(other.sequence);
    }
    return {};
}

// The bytes at the place of the payload one lap later, and their event.
struct NextLap {
    // As long as the payload; the payload's own bytes where nothing was written yet.
    std::string bytes;
    std::uint64_t first_owner = 0;  // sequence of the first event in it; 0: none
};

NextLap read_next_lap(const History& history, BufferIndex index, const Placement& placement,
                      const Event& event) {
    const Buffer& buffer = history.buffer(index);
    NextLap lap{event.payload, 0};
    const std::uint64_t begin = placement.position + buffer.capacity + (event.bytes - event.length);
    for (const Placement& later : buffer.placements) {
        if (later.sequence <= event.sequence) continue;
        const std::uint64_t distance = later.position - begin;  // modulo 2^64: negative is huge
        const bool ahead = distance < event.length;
        const bool behind = begin - later.position < later.bytes;
        const Event* other = history.find(buffer.cpu, later.sequence);
        if ((!ahead && !behind) || !other->payload_kept) continue;
        const std::string bytes = history.expected_bytes(index, later);
        const std::uint64_t to = ahead ? distance : 0;
        const std::uint64_t from = ahead ? 0 : begin - later.position;
        const std::uint64_t count = std::min(bytes.size() - from, event.length - to);
        lap.bytes.replace(to, count, bytes, from, count);
        if (lap.first_owner == 0) lap.first_owner = later.sequence;
    }
    return lap;
}

// Returns how many bytes of `head`, followed by the rest of `rest`, give the digest.
std::optional<std::size_t> find_split(const std::string& head, const std::string& rest,
                                      std::uint64_t digest) {
    const std::size_t size = head.size();
    // The hash of the first `split` bytes from which the rest of `rest` leads to the digest.
    std::vector<std::uint64_t> needed(size + 1, digest);
    for (std::size_t split = size; split > 0; --split)
        needed[split - 1] = (needed[split] * kInverse) ^ static_cast<std::uint8_t>(rest[split - 1]);
    std::uint64_t prefix = kFnvOffsetBasis;
    for (std::size_t split = 0; split < size; ++split) {
        if (prefix == needed[split]) return split;
        prefix = fnv1a_step(prefix, static_cast<std::uint8_t>(head[split]));
    }
    return prefix == digest ? std::optional(size) : std::nullopt;
}

std::string explain_by_mixture(const History& history, std::uint32_t cpu, const Event& event,
                               const Record& record) {
    if (!event.payload_kept || event.length != record.length) return {};
    for (const BufferIndex index : history.buffers_of(cpu)) {
        const Placement* placement = history.find_placement(index, event.sequence);
        if (placement == nullptr) continue;
        const NextLap lap = read_next_lap(history, index, *placement, event);
        if (lap.first_owner == 0) continue;
        const std::string owner =
            "event " + std::to_string(lap.first_owner) + ", which overwrote it";
        if (const auto split = find_split(lap.bytes, event.payload, record.digest)) {
            return "the first " + plural(*split, "byte") + " of the payload are those of " + owner;
        }
        if (const auto split = find_split(event.payload, lap.bytes, record.digest)) {
            return "the payload is right up to byte " + std::to_string(*split) +
                   ", and then that of " + owner;
        }
    }
    return {};
}

// Returns the bytes at the payload's place while the event was in flight. Nothing: the event was
// whole then, or the old bytes are not kept.
std::optional<std::string> read_in_flight(const History& history, std::uint32_t cpu,
                                          const Event& event) {
    if (event.in_flight == Written::whole || !event.payload_kept) return std::nullopt;
    const Buffer* buffer = nullptr;
    const Placement* own = nullptr;
    BufferIndex first = 0;
    for (const BufferIndex index : history.buffers_of(cpu)) {
        own = history.find_placement(index, event.sequence);
        if (own == nullptr) continue;
        first = index;
        buffer = &history.buffer(index);
        break;
    }
    if (own == nullptr) return std::nullopt;
    const std::uint64_t header_bytes = event.bytes - event.length;
    // Unwritten bytes of a region are zero.
    std::string shown(event.length, '\0');
    const std::uint64_t begin = own->position + header_bytes - buffer->capacity;
    for (const Placement& earlier : buffer->placements) {
        if (earlier.position == own->position) break;
        const std::uint64_t distance = earlier.position - begin;  // modulo 2^64: negative is huge
        const bool ahead = distance < event.length;
        const bool behind = begin - earlier.position < earlier.bytes;
        if (!ahead && !behind) continue;
        if (!history.find(cpu, earlier.sequence)->payload_kept) return std::nullopt;
        const std::string bytes = history.expected_bytes(first, earlier);
        const std::uint64_t to = ahead ? distance : 0;
        const std::uint64_t from = ahead ? 0 : begin - earlier.position;
        const std::uint64_t count = std::min(bytes.size() - from, event.length - to);
        shown.replace(to, count, bytes, from, count);
    }
    const std::uint64_t written = written_bytes(event.in_flight, header_bytes, event.length);
    if (written > header_bytes)
        shown.replace(0, written - header_bytes, event.payload, 0, written - header_bytes);
    return shown;
}

std::string_view in_flight_text(Written written) {
    if (written == Written::half) return "the header and half of the payload were";
    return written == Written::header ? "only the header was" : "nothing of the event was";
}

}  // namespace

std::string explain_in_flight(const History& history, std::uint32_t cpu, const Event& event,
                              const Record& record) {
    if (event.length != record.length || event.digest() == record.digest) return {};
    const std::optional<std::string> shown = read_in_flight(history, cpu, event);
    if (!shown) return {};
    std::string part = "the payload is";
    if (fnv1a(*shown) != record.digest) {
        const auto split = find_split(*shown, event.payload, record.digest);
        if (!split) return {};
        part = "the first " + plural(*split, "byte") + " of the payload are";
    }
    return part + " what the ring held while " + std::string(in_flight_text(event.in_flight)) +
           " written, before write_pos covered the event";
}

bool is_header_misread(const Event& event, const Record& record) {
    if (event.extra_header.empty() || !event.payload_kept) return false;
    const std::string bytes = event.extra_header + event.payload;
    const std::string_view read = std::string_view(bytes).substr(0, record.length);
    return read.size() == record.length && fnv1a(read) == record.digest;
}

std::string explain_torn(const History& history, std::uint32_t cpu, const Event& event,
                         const Record& record) {
    std::string text = explain_by_header(event, record);
    if (text.empty()) text = explain_by_other(history, cpu, event, record);
    if (text.empty()) text = explain_by_mixture(history, cpu, event, record);
    return text;
}

}  // namespace kmes::conformance::internal
