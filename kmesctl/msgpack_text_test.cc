// SPDX-License-Identifier: MIT
#include "kmesctl/msgpack_text.h"

#include <gtest/gtest.h>

#include <string>

namespace kmes::kmesctl {
namespace {

std::string whole(std::string_view bytes) {
    const MsgpackText text = msgpack_text(bytes);
    EXPECT_EQ(text.end, MsgpackEnd::kWhole);
    EXPECT_EQ(text.read_bytes, bytes.size());
    return text.text;
}

TEST(MsgpackText, AKeyIsAString) {
    EXPECT_EQ(whole("\x85\xA1"
                    "a\x01\x02\x03\xC0\x04\xC3\x05\xC4\x01z\x06"),
              R"({"a":1,"2":3,"null":4,"true":5,"hex:7a":6})");
    EXPECT_EQ(whole(std::string_view("\x81\xCA\x7F\x80\0\0\x01", 7)), R"({"Infinity":1})");
}

TEST(MsgpackText, AContainerAsAKeyIsItsBytes) {
    EXPECT_EQ(whole("\x82\x81\x01\x02\x03\x92\x01\x90\x04"),
              R"({"msgpack hex:810102":3,"msgpack hex:920190":4})");
    EXPECT_EQ(msgpack_text("\x81\x81\x01").end, MsgpackEnd::kShort);
    EXPECT_EQ(msgpack_text("\x81\x91\xC1").end, MsgpackEnd::kReserved);
}

// The payload of 64 bytes is a map whose key is such a map again, and so on.
TEST(MsgpackText, KeysInKeysCostNoMoreThanTheirBytes) {
    std::string bytes(kMsgpackMaxDepth - 1, '\x81');
    bytes.append(kMsgpackMaxDepth, '\x01');
    EXPECT_LT(whole(bytes).size(), 4 * bytes.size());
    EXPECT_EQ(msgpack_text(std::string(kMsgpackMaxDepth + 1, '\x81')).end, MsgpackEnd::kDeep);
}

}  // namespace
}  // namespace kmes::kmesctl
