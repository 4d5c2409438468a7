// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The binary interface is the same in every language that the header serves, and is that of 5.1.6
 * and event-model.md. Also tests the smaller promises of abi.h and event.h.
 */
#include <gtest/gtest.h>

#include <string>

#include "kmes/reader.h"
#include "kmes/ring.h"
#include "kmes/tests/abi_table.h"

namespace {

const unsigned kCxx20[] = ABI_TABLE;

/* Offset and size of each row, written by hand from the tables of the specification. */
const unsigned kSpecification[] = {
    0,    8,       // magic
    8,    4,       // version
    12,   2,       // cpu_id
    16,   8,       // capacity
    24,   8,       // data_offset
    32,   8,       // generation
    64,   8,       // write_pos
    72,   8,       // tail_pos
    128,  4,       // futex_counter
    132,  1,       // need_wake
    0,    4,       // event_size
    4,    4,       // header_size
    8,    8,       // timestamp
    16,   8,       // sequence
    24,   2,       // cpu_id
    26,   1,       // origin_class
    27,   2,       // type_len
    0,    8,       // kmes_emit_entry.type
    8,    2,       // type_len
    16,   8,       // payload
    24,   4,       // payload_len
    4096, 29, 32,  // the page, the fixed header, an entry
};

static_assert(sizeof(kSpecification) == sizeof(abi_table_c11));
static_assert(sizeof(kSpecification) == sizeof(kCxx20));

TEST(Abi, IsThatOfTheSpecificationInC11AndCxx20AndKernelC) {
    for (unsigned i = 0; i < ABI_TABLE_ENTRIES; i++) {
        EXPECT_EQ(abi_table_c11[i], kSpecification[i]) << i;
        EXPECT_EQ(kCxx20[i], kSpecification[i]) << i;
        EXPECT_EQ(abi_table_kernel[i], kSpecification[i]) << i;
    }
}

TEST(Abi, KnowsVersionOneAlone) {
    alignas(8) static unsigned char page[4096];
    kmes_fields fields{};
    for (const unsigned version : {0u, 2u, 0xFFFFFFFFu}) {
        EXPECT_FALSE(kmes_bind_fields(&fields, page, version));
        EXPECT_EQ(fields.magic, nullptr);
        EXPECT_EQ(kmes_mapping_bytes(version, 4096), 0u);
    }
    EXPECT_TRUE(kmes_bind_fields(&fields, page, 1));
    EXPECT_EQ(reinterpret_cast<unsigned char*>(fields.need_wake), page + 132);
    EXPECT_EQ(kmes_mapping_bytes(1, 65536), 4096u + 2 * 65536u);
}

TEST(EventCheck, SaysWhatIsWrongInWordsOfItsOwn) {
    kmes_event_header header{};
    header.event_size = 40;
    header.header_size = 31;
    header.type_len = 2;
    EXPECT_EQ(kmes_event_check(&header, 40), KMES_EVENT_IS_SOUND);
    EXPECT_EQ(kmes_event_check(&header, 39), KMES_EVENT_TOO_LONG);
    EXPECT_EQ(kmes_event_check(&header, 29), KMES_EVENT_IS_SHORT);
    std::string seen;
    for (int check = KMES_EVENT_IS_SOUND; check <= KMES_EVENT_TOO_LONG + 1; check++) {
        const std::string text = kmes_event_check_text(static_cast<enum kmes_event_check>(check));
        EXPECT_FALSE(text.empty());
        EXPECT_EQ(seen.find("|" + text + "|"), std::string::npos) << "said before: " << text;
        seen += "|" + text + "|";
    }
}

// RFC 3629: the edges of every row of its table of well-formed sequences, and one step beyond.
TEST(Utf8, TakesWhatIsWellFormedAndNothingElse) {
    const std::string good[] = {"",
                                "a",
                                "\x7F",
                                "\xC2\x80",
                                "\xDF\xBF",
                                "\xE0\xA0\x80",
                                "\xE0\xBF\xBF",
                                "\xE1\x80\x80",
                                "\xEC\xBF\xBF",
                                "\xED\x80\x80",
                                "\xED\x9F\xBF",
                                "\xEE\x80\x80",
                                "\xEF\xBF\xBF",
                                "\xF0\x90\x80\x80",
                                "\xF0\xBF\xBF\xBF",
                                "\xF1\x80\x80\x80",
                                "\xF4\x80\x80\x80",
                                "\xF4\x8F\xBF\xBF",
                                "type.\xC3\xA9.\xF0\x9F\x98\x80",
                                std::string("\0", 1)};
    const std::string bad[] = {"\x80",
                               "\xBF",
                               "\xC0\x80",
                               "\xC1\xBF",
                               "\xC2",
                               "\xC2\x7F",
                               "\xC2\xC0",
                               "\xE0\x9F\xBF",
                               "\xE0\xA0",
                               "\xE0\xA0\x7F",
                               "\xE1\x80\xC0",
                               "\xED\xA0\x80",
                               "\xED\xBF\xBF",
                               "\xF0\x8F\xBF\xBF",
                               "\xF0\x90\x80",
                               "\xF0\x90\x80\x7F",
                               "\xF0\x90\xC0\x80",
                               "\xF4\x90\x80\x80",
                               "\xF5\x80\x80\x80",
                               "\xFF",
                               "ok\xFE",
                               "\xE2\x82",
                               "\xF1\x80\x80"};
    for (const std::string& text : good)
        EXPECT_TRUE(kmes_utf8_is_valid(text.data(), text.size())) << text;
    for (const std::string& text : bad)
        EXPECT_FALSE(kmes_utf8_is_valid(text.data(), text.size())) << testing::PrintToString(text);
}

}  // namespace
