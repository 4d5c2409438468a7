// SPDX-License-Identifier: MIT
//
// The types of each pair in colliding_types.h differ, and have the same hash.
#include "conformance/play/colliding_types.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <map>

namespace kmes::conformance {
namespace {

using Hash = std::uint32_t (*)(std::string_view);

std::uint8_t byte(char character) {
    return static_cast<std::uint8_t>(character);
}

// Each byte changes the state by one step.
template <typename State>
std::uint32_t fold(std::string_view text, State state, State (*step)(State, std::uint8_t)) {
    for (const char each : text) state = step(state, byte(each));
    return static_cast<std::uint32_t>(state);
}

std::uint32_t crc(std::string_view text, std::uint32_t polynomial) {
    std::uint32_t state = ~std::uint32_t{0};
    for (const char each : text) {
        state ^= byte(each);
        for (int bit = 0; bit < 8; ++bit) state = (state & 1) * polynomial ^ state >> 1;
    }
    return ~state;
}

std::uint32_t one_at_a_time(std::string_view text) {
    std::uint32_t state = fold<std::uint32_t>(text, 0, [](std::uint32_t hash, std::uint8_t next) {
        hash += next;
        hash += hash << 10;
        return hash ^ hash >> 6;
    });
    state += state << 3;
    state ^= state >> 11;
    return state + (state << 15);
}

// `text` has a multiple of four bytes.
std::uint32_t murmur3(std::string_view text) {
    std::uint32_t state = 0;
    for (std::size_t i = 0; i + 4 <= text.size(); i += 4) {
        std::uint32_t word = 0;
        for (unsigned j = 0; j < 4; ++j) word |= std::uint32_t{byte(text[i + j])} << 8 * j;
        state ^= std::rotl(word * 0xcc9e2d51, 15) * 0x1b873593;
        state = std::rotl(state, 13) * 5 + 0xe6546b64;
    }
    state ^= static_cast<std::uint32_t>(text.size());
    state = (state ^ state >> 16) * 0x85ebca6b;
    state = (state ^ state >> 13) * 0xc2b2ae35;
    return state ^ state >> 16;
}

template <std::uint32_t kFactor, std::uint32_t kStart>
std::uint32_t by(std::string_view text) {
    return fold<std::uint32_t>(
        text, kStart, [](std::uint32_t hash, std::uint8_t next) { return hash * kFactor + next; });
}

template <std::uint32_t kFactor, std::uint32_t kStart>
std::uint32_t by_then_xor(std::string_view text) {
    return fold<std::uint32_t>(
        text, kStart, [](std::uint32_t hash, std::uint8_t next) { return hash * kFactor ^ next; });
}

std::uint32_t fnv_1a(std::string_view text) {
    return fold<std::uint32_t>(text, 0x811c9dc5, [](std::uint32_t hash, std::uint8_t next) {
        return (hash ^ next) * 0x01000193;
    });
}

std::uint32_t fnv_1a_of_64_bits(std::string_view text) {
    return fold<std::uint64_t>(text, 0xcbf29ce484222325, [](std::uint64_t hash, std::uint8_t next) {
        return (hash ^ next) * 0x100000001b3;
    });
}

const std::map<std::string_view, Hash>& hashes() {
    static const std::map<std::string_view, Hash> all = {
        {"FNV-1a", fnv_1a},
        {"FNV-1", by_then_xor<0x01000193, 0x811c9dc5>},
        {"FNV-1a of 64 bits, the lower half", fnv_1a_of_64_bits},
        {"CRC-32", [](std::string_view text) { return crc(text, 0xedb88320); }},
        {"CRC-32C", [](std::string_view text) { return crc(text, 0x82f63b78); }},
        {"djb2", by<33, 5381>},
        {"djb2 with exclusive or", by_then_xor<33, 5381>},
        {"sdbm", by<65599, 0>},
        {"by 31", by<31, 0>},
        {"one at a time", one_at_a_time},
        {"MurmurHash3", murmur3},
    };
    return all;
}

// Published check values prove that the hash functions are correct.
TEST(CollidingTypes, TheHashesAreTheirs) {
    EXPECT_EQ(hashes().at("FNV-1a")("a"), 0xe40c292c);
    EXPECT_EQ(hashes().at("FNV-1")("a"), 0x050c5d7e);
    EXPECT_EQ(hashes().at("CRC-32")("123456789"), 0xcbf43926);
    EXPECT_EQ(hashes().at("CRC-32C")("123456789"), 0xe3069283);
    EXPECT_EQ(hashes().at("by 31")("abc"), 96354u);
    EXPECT_EQ(hashes().at("one at a time")("a"), 0xca2e9442);
    EXPECT_EQ(hashes().at("MurmurHash3")("test"), 0xba6bd213);
}

TEST(CollidingTypes, EachPairHasOneHash) {
    for (const CollidingTypes& each : kCollidingTypes) {
        const Hash hash = hashes().at(each.hash);
        EXPECT_NE(each.first, each.second) << each.hash;
        EXPECT_EQ(each.first.size(), each.second.size()) << each.hash;
        EXPECT_EQ(hash(each.first), hash(each.second)) << each.hash;
    }
}

}  // namespace
}  // namespace kmes::conformance
