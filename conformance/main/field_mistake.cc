// SPDX-License-Identifier: MIT
//
// What is wrong with one field of an E record.
#include "conformance/main/field_mistake.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "conformance/oracle/record.h"

namespace kmes::conformance {
namespace {

constexpr std::size_t kShownBytes = 60;
constexpr std::string_view kNames[] = {"",       "cpu",  "sequence", "timestamp",
                                       "origin", "type", "length",   "digest"};

std::optional<std::uint64_t> number_of(std::string_view field) {
    if (field.empty() || field.size() > 20) return std::nullopt;
    std::uint64_t value = 0;
    for (const char digit : field) {
        if (digit < '0' || digit > '9') return std::nullopt;
        if (__builtin_mul_overflow(value, 10, &value)) return std::nullopt;
        if (__builtin_add_overflow(value, static_cast<std::uint64_t>(digit - '0'), &value)) {
            return std::nullopt;
        }
    }
    return value;
}

// Returns which of these numbers the field equals, the first match.
std::string which(std::uint64_t value,
                  const std::vector<std::pair<std::uint64_t, std::string_view>>& known) {
    for (const auto& [number, what] : known) {
        if (value == number) return std::string(what);
    }
    return {};
}

std::string explain_number(std::size_t number, std::uint64_t value, std::uint32_t cpu,
                           const Event& event) {
    const std::uint64_t header = event.bytes - event.length;
    const std::string without_type = "event_size - " + std::to_string(kHeaderBytesBeforeType);
    switch (number) {
        case 1:
            return value == cpu + 1 ? "counted from 1" : "";
        case 2:
            return value + 1 == event.sequence ? "counted from 0; the first event is 1" : "";
        case 3:
            return which(value, {{event.timestamp / 1000, "microseconds"},
                                 {event.timestamp / 1'000'000, "milliseconds"},
                                 {event.timestamp / 1'000'000'000, "seconds"},
                                 {event.timestamp % 1'000'000'000, "without its seconds"},
                                 {event.timestamp & 0xffffffff, "its lower 32 bits"},
                                 {event.sequence, "the sequence number"}});
        case 4:
            return which(value, {{event.type.size(), "type_len"}, {cpu, "the CPU"}});
        case 6:
            return which(value, {{event.bytes, "the length of the whole event"},
                                 {header, "header_size"},
                                 {event.type.size(), "type_len"},
                                 {event.length + event.extra_header.size(),
                                  without_type + " - type_len; the payload begins at header_size"},
                                 {event.bytes - kHeaderBytesBeforeType, without_type}});
        default:
            return "";
    }
}

std::string explain_type(std::string_view field, const Event& event) {
    const std::string right = hex_of(event.type);
    std::string lower(field);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](char byte) {
        return byte >= 'A' && byte <= 'F' ? static_cast<char>(byte - 'A' + 'a') : byte;
    });
    const std::string reversed = hex_of(std::string(event.type.rbegin(), event.type.rend()));
    const std::string longer = hex_of(event.type + event.extra_header);
    if (lower == right) return "the right digits in upper case";
    if (field == event.type) return "the type as text; expected its bytes in hex";
    if (lower == right + "00") return "the type with a zero byte after it";
    if (lower == reversed) return "the type backwards";
    if (lower == longer) return "the header up to the payload; the type has type_len bytes";
    return "";
}

// The correct value, and where it comes from.
std::string right_of(std::size_t number, std::uint32_t cpu, const Event& event) {
    switch (number) {
        case 1:
            return fmt::format("the event is of CPU {}, the index of its fd", cpu);
        case 2:
            return fmt::format("the event's sequence is {}", event.sequence);
        case 3:
            return fmt::format("the event's timestamp is {} ns", event.timestamp);
        case 4:
            return fmt::format("the event's origin_class is {}", event.origin);
        case 5:
            return fmt::format("the {} byte{} of the type in lower-case hex are {}",
                               event.type.size(), event.type.size() == 1 ? "" : "s",
                               hex_of(event.type).substr(0, 2 * kShownBytes));
        case 6:
            return fmt::format("the payload has {} bytes (event_size {} - header_size {})",
                               event.length, event.bytes, event.bytes - event.length);
        default:
            return fmt::format("FNV-1a of the {} payload byte{} is {}", event.length,
                               event.length == 1 ? "" : "s", digest_text(event.digest()));
    }
}

}  // namespace

std::string explain_field(std::size_t number, std::string_view field, std::uint32_t cpu,
                          const Event& event) {
    std::string hint;
    const auto value = number_of(field);
    if (number == 7) {
        hint = explain_digest(field, spec_of(event), event.sequence, static_cast<uint16_t>(cpu));
    } else if (number == 5) {
        hint = explain_type(field, event);
    } else if (!value) {
        hint = "no decimal number";
    } else {
        hint = explain_number(number, *value, cpu, event);
        const bool zeros = field.size() > 1 && field[0] == '0';
        if (zeros) hint += (hint.empty() ? "" : ", ") + std::string("with leading zeros");
    }
    return fmt::format("field {} ({}) is {}{}; {}", number, kNames[number],
                       quote_bytes(field, kShownBytes), hint.empty() ? "" : ", " + hint,
                       right_of(number, cpu, event));
}

}  // namespace kmes::conformance
