// SPDX-License-Identifier: MIT
//
// Events that describe themselves. See payload.h.
#include "props/threads/payload.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

namespace kmes::props {
namespace {

constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;

std::uint64_t hash_of(std::uint64_t seed, EventKey key) {
    return mix_bits(seed ^ mix_bits(std::uint64_t{key.emitter} << 32 | key.number));
}

std::size_t payload_bytes_of(Sizes sizes, EventKey key, std::uint64_t hash) {
    const std::uint64_t kind = hash >> 32 & 63;

    if (sizes == Sizes::kTiny || key.emitter == 0) return hash % 9;
    if (sizes == Sizes::kSmall || kind >= 5) return hash % 201;
    if (kind >= 1) return hash % 3000;
    return hash >> 38 & 1 ? 33000 : hash % 20000;  // 33000: over 50 % of 64 KiB
}

// "<emitter>.<number>" and up to eleven letters.
std::string type_of(EventKey key, std::uint64_t hash) {
    std::string type = std::to_string(key.emitter) + "." + std::to_string(key.number);

    for (std::uint64_t i = 0; i < (hash >> 40) % 12; i++)
        type += static_cast<char>('a' + (hash >> i) % 26);
    return type;
}

bool parse_key(std::string_view type, EventKey* key) {
    const char* end = type.data() + type.size();
    const auto emitter = std::from_chars(type.data(), end, key->emitter);

    if (emitter.ec != std::errc() || emitter.ptr == end || *emitter.ptr != '.') return false;
    return std::from_chars(emitter.ptr + 1, end, key->number).ec == std::errc();
}

}  // namespace

std::uint64_t mix_bits(std::uint64_t value) {
    value += kGolden;
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9;
    value = (value ^ value >> 27) * 0x94D049BB133111EB;
    return value ^ value >> 31;
}

EventText describe_event(std::uint64_t seed, Sizes sizes, EventKey key) {
    const std::uint64_t hash = hash_of(seed, key);
    EventText text;

    text.type = type_of(key, hash);
    text.origin = static_cast<std::uint8_t>(key.emitter & 3);  // one for all of a batch
    text.payload.resize(payload_bytes_of(sizes, key, hash));
    for (std::size_t at = 0; at < text.payload.size(); at += 8) {
        const std::uint64_t word = mix_bits(hash + at);

        memcpy(text.payload.data() + at, &word, std::min<std::size_t>(8, text.payload.size() - at));
    }
    return text;
}

std::string check_event(std::uint64_t seed, Sizes sizes, const kmes_event_view& view,
                        EventKey* key) {
    const std::string_view type(reinterpret_cast<const char*>(view.type), view.type_len);

    if (!parse_key(type, key))
        return "a type of " + std::to_string(type.size()) + " bytes that nobody emitted";
    const EventText text = describe_event(seed, sizes, *key);
    const std::string name = "event " + text.type + " is torn: ";

    if (type != text.type) return name + "its type is another";
    if (view.header_size != KMES_EVENT_FIXED_BYTES + text.type.size())
        return name + "header_size " + std::to_string(view.header_size);
    if (view.event_size != view.header_size + text.payload.size())
        return name + "event_size " + std::to_string(view.event_size);
    if (view.origin_class != text.origin)
        return name + "origin_class " + std::to_string(view.origin_class);
    if (!timestamp_is_whole(view.timestamp))
        return name + "timestamp " + std::to_string(view.timestamp);
    if (view.payload_len != text.payload.size())
        return name + "payload_len " + std::to_string(view.payload_len);
    for (std::size_t i = 0; i < text.payload.size(); i++) {
        if (view.payload[i] != static_cast<std::uint8_t>(text.payload[i]))
            return name + "byte " + std::to_string(i) + " of its payload";
    }
    return "";
}

std::uint64_t timestamp_of(std::uint64_t tick) {
    return tick << 16 | (mix_bits(tick) & 0xFFFF);
}

bool timestamp_is_whole(std::uint64_t timestamp) {
    return timestamp == timestamp_of(timestamp >> 16);
}

}  // namespace kmes::props
