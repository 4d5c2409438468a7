// SPDX-License-Identifier: MIT
// Tests escaped text with each byte at each place of a plain text, because plain text is copied in
// pieces.
#include "kmesctl/escape.h"

#include <gtest/gtest.h>

#include <string>

namespace kmes::kmesctl {
namespace {

constexpr std::size_t kMostBytes = 20;

bool is_one_plain_byte(const std::string& text) {
    return text.size() == 1 && text[0] >= ' ' && text[0] <= '~';
}

TEST(Escape, EachByteIsTheSameAtEachPlace) {
    for (unsigned value = 0; value < 256; ++value) {
        const std::string byte(1, static_cast<char>(value));
        const std::string json = json_quoted(byte);
        EXPECT_TRUE(is_one_plain_byte(escaped(byte)) || escaped(byte)[0] == '\\') << value;
        for (std::size_t length = 0; length < kMostBytes; ++length) {
            for (std::size_t place = 0; place <= length; ++place) {
                const std::string before(place, '~'), after(length - place, ' ');
                const std::string text = before + byte + after;
                ASSERT_EQ(escaped(text), before + escaped(byte) + after) << value;
                ASSERT_EQ(json_quoted(text),
                          '"' + before + json.substr(1, json.size() - 2) + after + '"')
                    << value;
            }
        }
    }
}

TEST(Escape, KnowsWhatIsNotPlain) {
    EXPECT_EQ(escaped("a\x1b[31m\n\x7f\x80\\\""), "a\\x1b[31m\\n\\x7f\\x80\\\\\"");
    EXPECT_EQ(quoted("12345678\""), "\"12345678\\\"\"");
    EXPECT_EQ(escaped("\u00e9\u202e\u2028"), "\u00e9\\xe2\\x80\\xae\\xe2\\x80\\xa8");
    EXPECT_EQ(json_quoted("12345678\xff\t\\"), "\"12345678\\ufffd\\u0009\\\\\"");
}

}  // namespace
}  // namespace kmes::kmesctl
