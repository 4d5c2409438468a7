// SPDX-License-Identifier: MIT
//
// Tests of text for people, terminals and shells.
#include "conformance/report/text.h"

#include <gtest/gtest.h>

#include <cstddef>

namespace kmes::conformance {
namespace {

TEST(Text, IsCutBetweenCharacters) {
    EXPECT_EQ(cut("abc", 3), "abc");
    EXPECT_EQ(cut("abcd", 3), "abc");
    EXPECT_EQ(cut("a\xe2\x82\xac", 4), "a\xe2\x82\xac");
    for (const std::size_t most : {1u, 2u, 3u}) EXPECT_EQ(cut("a\xe2\x82\xac", most), "a");
    EXPECT_EQ(cut("\xf0\x9f\x98\x80", 3), "");
    EXPECT_EQ(cut("\x80\x80\x80\x80\x80\x80", 5), "\x80\x80\x80\x80\x80");
    EXPECT_EQ(cut("abc", 0), "");
}

TEST(Text, KeepsValidUtf8AndEscapesTheRest) {
    EXPECT_EQ(valid_utf8("a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"),
              "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    EXPECT_EQ(valid_utf8("\xff\xc3"), "\\xff\\xc3");
    EXPECT_EQ(valid_utf8("\xc0\x80"), "\\xc0\\x80");           // overlong
    EXPECT_EQ(valid_utf8("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
    EXPECT_EQ(valid_utf8("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
    EXPECT_EQ(valid_utf8("\xe2\x82"), "\\xe2\\x82");
}

TEST(Text, LetsATerminalDoNothingButShow) {
    EXPECT_EQ(printable("a\x1b[2Jb\r\n"), "a\\x1b[2Jb\\x0d\\x0a");
    EXPECT_EQ(printable("a\tb\nc\x7f", true), "a\tb\nc\\x7f");
    EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");           // a control character in UTF-8
    EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // right to left
}

TEST(Text, QuotesForAShell) {
    EXPECT_EQ(shell_command({"./a", "--x=1", "two words", "it's", "", "*"}),
              "./a --x=1 'two words' 'it'\\''s' '' '*'");
    // Bytes that a report would escape.
    EXPECT_EQ(shell_command({"a\n1", "\xff'\\", "\xc3\xb6", "\xe2\x80\xae"}),
              "$'a\\0121' $'\\377\\'\\\\' '\xc3\xb6' $'\\342\\200\\256'");
}

TEST(Text, WrapsAtASpaceAndNeverWithinACharacter) {
    EXPECT_EQ(wrapped("a b", 10, 4), "a b\n");
    EXPECT_EQ(wrapped("aaaa bbbb cc", 10, 2), "aaaa bbbb\n  cc\n");
    EXPECT_EQ(wrapped("    aaaaaaaaaaaa", 10, 2), "    aaaaaa\n  aaaaaa\n");
    EXPECT_EQ(wrapped("x\ny\n", 10, 2), "x\ny\n");
    EXPECT_EQ(wrapped("aaaaaaaaa\xc3\xa4", 10, 2), "aaaaaaaaa\n  \xc3\xa4\n");
    EXPECT_EQ(wrapped("", 10, 2), "");
}

}  // namespace
}  // namespace kmes::conformance
