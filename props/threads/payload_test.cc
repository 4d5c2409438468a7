// SPDX-License-Identifier: MIT
//
// Proves that the payload check can fail: it notices any changed byte, and any mixture of two
// events.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "props/threads/payload.h"

namespace kmes::props {
namespace {

constexpr std::uint64_t kSeed = 7;

std::vector<std::uint8_t> event_bytes(EventKey key) {
    const EventText text = describe_event(kSeed, Sizes::kSmall, key);
    kmes_event_input input = {};
    kmes_event_header header;

    input.type = text.type.data();
    input.type_len = static_cast<__u16>(text.type.size());
    input.payload_len = static_cast<__u32>(text.payload.size());
    input.origin_class = text.origin;
    kmes_event_header_build(&header, &input, timestamp_of(key.number), key.number, 0);

    std::vector<std::uint8_t> bytes(sizeof(header));

    memcpy(bytes.data(), &header, sizeof(header));
    bytes.insert(bytes.end(), text.type.begin(), text.type.end());
    bytes.insert(bytes.end(), text.payload.begin(), text.payload.end());
    return bytes;
}

// Like a reader, stops at what cannot be an event.
std::string check(const std::vector<std::uint8_t>& bytes) {
    kmes_event_header header;
    kmes_event_view view;
    EventKey key;

    memcpy(&header, bytes.data(), sizeof(header));
    if (kmes_event_check(&header, bytes.size()) != KMES_EVENT_IS_SOUND) return "not sound";
    kmes_event_view_make(&view, bytes.data());
    return check_event(kSeed, Sizes::kSmall, view, &key);
}

TEST(PayloadTest, AWholeEventIsOne) {
    for (std::uint32_t number = 1; number <= 300; number++)
        EXPECT_EQ("", check(event_bytes({number % 4, number})));
}

// The reader itself checks the sequence number and the CPU.
bool is_checked_elsewhere(std::size_t at) {
    return (at >= offsetof(kmes_event_header, sequence) &&
            at < offsetof(kmes_event_header, origin_class));
}

TEST(PayloadTest, AByteThatIsAnotherIsSeen) {
    for (std::uint32_t number = 1; number <= 50; number++) {
        const std::vector<std::uint8_t> whole = event_bytes({1, number});

        for (std::size_t at = 0; at < whole.size(); at++) {
            std::vector<std::uint8_t> torn = whole;

            torn[at] ^= 0x10;
            if (!is_checked_elsewhere(at)) {
                EXPECT_NE("", check(torn)) << "byte " << at << " of event " << number;
            }
        }
    }
}

TEST(PayloadTest, TheBeginningOfOneEventAndTheEndOfAnotherAreSeen) {
    for (std::uint32_t number = 1; number <= 50; number++) {
        const std::vector<std::uint8_t> older = event_bytes({1, number});
        const std::vector<std::uint8_t> newer = event_bytes({1, number + 1});

        for (std::size_t at = sizeof(kmes_event_header); at < older.size(); at++) {
            std::vector<std::uint8_t> torn = older;

            for (std::size_t i = at; i < torn.size() && i < newer.size(); i++) torn[i] = newer[i];
            if (torn != older) {
                EXPECT_NE("", check(torn)) << "from byte " << at << " of event " << number;
            }
        }
    }
}

}  // namespace
}  // namespace kmes::props
