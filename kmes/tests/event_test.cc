// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Private bytes (event.h): the reported rule of several that a header breaks (E7), and the content
 * of a view. Compares every beginning of a UTF-8 text with the table of the Unicode Standard.
 */
#include "kmes/event.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <string>
#include <vector>

namespace kmes::tests {
namespace {

constexpr std::uint16_t kFixed = KMES_EVENT_FIXED_BYTES;

kmes_event_header header_of(std::uint32_t event_size, std::uint32_t header_size,
                            std::uint16_t type_len) {
    kmes_event_header header{};
    header.event_size = event_size;
    header.header_size = header_size;
    header.type_len = type_len;
    return header;
}

// The first rule that is broken, in the order of the enumeration (event.h).
TEST(EventCheck, SaysTheFirstRuleThatIsBroken) {
    const struct {
        kmes_event_header header;
        std::uint64_t available;
        enum kmes_event_check first;
    } rows[] = {
        {header_of(150, 200, 0), kFixed, KMES_EVENT_IS_SHORT},
        {header_of(150, 200, 0), kFixed + 1, KMES_EVENT_HAS_NO_TYPE},
        {header_of(20, kFixed, 1), 100, KMES_EVENT_TYPE_TOO_LONG},
        {header_of(150, kFixed, 1), 100, KMES_EVENT_TYPE_TOO_LONG},
        {header_of(150, 151, 1), 100, KMES_EVENT_HEADER_TOO_LONG},
        {header_of(150, 150, 1), 100, KMES_EVENT_TOO_LONG},
        {header_of(100, 100, 100 - kFixed), 100, KMES_EVENT_IS_SOUND},
        {header_of(100, 100, 101 - kFixed), 100, KMES_EVENT_TYPE_TOO_LONG},
    };
    for (const auto& row : rows)
        EXPECT_EQ(kmes_event_check(&row.header, row.available), row.first) << row.available;
}

// A text with the numbers of another form would mislead.
TEST(EventCheck, NamesTheNumbersOfItsForm) {
    EXPECT_EQ(std::string(kmes_event_check_text(KMES_EVENT_IS_SHORT)),
              "fewer than the " + std::to_string(KMES_EVENT_MIN_BYTES) +
                  " bytes that an event has at least");
    EXPECT_EQ(std::string(kmes_event_check_text(KMES_EVENT_TYPE_TOO_LONG)),
              std::to_string(kFixed) + " + type_len is more than header_size");
}

// The memory is exactly the fixed part of a header, so that ASan notices a load beyond it.
TEST(EventHeader, IsLoadedFieldByFieldFromItsBytesAlone) {
    std::vector<std::uint8_t> bytes(sizeof(kmes_event_header));
    for (std::size_t i = 0; i < bytes.size(); i++)
        bytes[i] = static_cast<std::uint8_t>(0xE1 - 7 * i);
    kmes_event_header expected;
    memcpy(&expected, bytes.data(), sizeof(expected));
    // The GUIDs of a later form are not loaded.
    constexpr std::size_t kGuids = offsetof(kmes_event_header, origin_class) + 1;
    memset(reinterpret_cast<char*>(&expected) + kGuids, 0,
           offsetof(kmes_event_header, type_len) - kGuids);
    kmes_event_header loaded{};
    kmes_event_header_load(&loaded, bytes.data());
    EXPECT_EQ(memcmp(&loaded, &expected, sizeof(loaded)), 0);
}

TEST(EventView, SaysThatNothingWasLostBefore) {
    std::uint8_t bytes[kFixed + 4] = {};
    const kmes_event_header header = header_of(kFixed + 4, kFixed + 2, 2);
    memcpy(bytes, &header, sizeof(header));
    kmes_event_view view;
    memset(&view, 0xA5, sizeof(view));
    kmes_event_view_make(&view, bytes);
    EXPECT_EQ(view.lost_before, 0u);
    EXPECT_EQ(view.type, bytes + kFixed);
    EXPECT_EQ(view.payload, bytes + kFixed + 2);
    EXPECT_EQ(view.payload_len, 2u);
}

// The Unicode Standard, table 3-7, "Well-Formed UTF-8 Byte Sequences".
bool is_one_character(const std::string& text) {
    static const struct {
        unsigned lead_first, lead_last, second_first, second_last;
        std::size_t bytes;
    } kRows[] = {
        {0x00, 0x7F, 0, 0, 1},       {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
    for (const auto& row : kRows) {
        if (byte(0) < row.lead_first || byte(0) > row.lead_last) continue;
        if (text.size() != row.bytes) return false;
        if (row.bytes > 1 && (byte(1) < row.second_first || byte(1) > row.second_last))
            return false;
        for (std::size_t i = 2; i < row.bytes; i++)
            if (byte(i) < 0x80 || byte(i) > 0xBF) return false;
        return true;
    }
    return false;
}

/* Splits the text into characters from the left: there is at most one way. */
bool is_right(const std::string& text) {
    std::size_t at = 0;
    while (at < text.size()) {
        std::size_t bytes = 1;
        while (bytes <= 4 &&
               !(at + bytes <= text.size() && is_one_character(text.substr(at, bytes))))
            bytes++;
        if (bytes > 4) return false;
        at += bytes;
    }
    return true;
}

TEST(Utf8, IsWhatTheTableOfTheStandardSays) {
    const std::string ends = "a\x7F\x80\xBF\xC0";
    for (int lead = 0; lead < 256; lead++) {
        for (int second = 0; second < 256; second++) {
            std::string text = {static_cast<char>(lead), static_cast<char>(second)};
            ASSERT_EQ(kmes_utf8_is_valid(text.data(), 1), is_right(text.substr(0, 1))) << lead;
            ASSERT_EQ(kmes_utf8_is_valid(text.data(), 2), is_right(text)) << lead << " " << second;
            for (const char third : ends) {
                text = text.substr(0, 2) + third;
                ASSERT_EQ(kmes_utf8_is_valid(text.data(), 3), is_right(text))
                    << lead << " " << second << " " << int(third);
                for (const char fourth : ends) {
                    text = text.substr(0, 3) + fourth;
                    ASSERT_EQ(kmes_utf8_is_valid(text.data(), 4), is_right(text))
                        << lead << " " << second << " " << int(third) << " " << int(fourth);
                }
            }
        }
    }
}

// The text ends directly before an unreadable page.
TEST(Utf8, IsReadNoFurtherThanItsEnd) {
    const std::size_t page = 4096;
    auto* pages = static_cast<std::uint8_t*>(
        mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(pages, MAP_FAILED);
    ASSERT_EQ(mprotect(pages + page, page, PROT_NONE), 0);
    for (const std::string text : {"\xC2", "\xE1", "\xE1\x80", "\xF1\x80\x80", "ab\xF1"}) {
        std::uint8_t* at = pages + page - text.size();
        memcpy(at, text.data(), text.size());
        EXPECT_FALSE(kmes_utf8_is_valid(at, text.size()));
    }
    munmap(pages, 2 * page);
}

}  // namespace
}  // namespace kmes::tests
