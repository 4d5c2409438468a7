// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The bytes that the writer puts into memory, one by one. Every expected byte is written by hand
 * from 5.1.5 to 5.1.7 and event-model.md; offsets and field order are those of the specification's
 * tables. The bytes are those of form A (docs/layouts.md); layouts_test.cc has a whole event of
 * each form.
 */
#include "kmes/tests/bytes.h"

#include <gtest/gtest.h>

#include "kmes/tests/world.h"

namespace kmes::tests {
namespace {

/* 5.1.6.1 magic: KMESRING in ASCII. */
const Bytes kMagic = {0x4B, 0x4D, 0x45, 0x53, 0x52, 0x49, 0x4E, 0x47};
/* 5.1.6.1 data_offset: 4096. */
const Bytes kDataOffset = {0x00, 0x10, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
const Bytes kCapacity256 = {0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
const Bytes kCapacity512 = {0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};

TEST(Header, IsPackedLittleEndianInFrontOfTypeAndPayload) {
    World world({.last_sequence = 0x0102030405060707, .cpu_id = 0x0A0B});
    world.now_ns = 0x1122334455667788;
    ASSERT_EQ(world.emit("ab", "xyz", KMES_ORIGIN_KACS), 0);
    const Bytes expected = {
        0x22, 0x00, 0x00, 0x00,                          // event_size: 29 + 2 + 3 = 34
        0x1F, 0x00, 0x00, 0x00,                          // header_size: 29 + 2 = 31
        0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,  // timestamp
        0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,  // sequence: the last one + 1
        0x0B, 0x0A,                                      // cpu_id
        0x02,                                            // origin_class: KACS
        0x02, 0x00,                                      // type_len
        'a',  'b',                                       // type
        'x',  'y',  'z',                                 // payload, from header_size on
    };
    EXPECT_EQ(world.first().survivors(), expected);
}

TEST(Header, LongerThanTheMinimumHasZerosBeforeThePayload) {
    World world({});
    world.now_ns = 5;
    kmes_event_input input{};
    input.type = "t";
    input.type_len = 1;
    input.payload = "p";
    input.payload_len = 1;
    input.header_extra_len = 3;
    ASSERT_EQ(kmes_cpu_emit(&world.cpu, &input), 0);
    const Bytes expected = {
        0x22, 0x00, 0x00, 0x00,              // event_size: 29 + 1 + 3 + 1 = 34
        0x21, 0x00, 0x00, 0x00,              // header_size: 33
        0x05, 0,    0,    0,    0, 0, 0, 0,  // timestamp
        0x01, 0,    0,    0,    0, 0, 0, 0,  // sequence: the first is 1
        0x00, 0x00,                          // cpu_id
        0x00,                                // origin_class
        0x01, 0x00,                          // type_len
        't',  0,    0,    0,                 // type, then the fields of a later version
        'p',                                 // payload
    };
    EXPECT_EQ(world.first().survivors(), expected);
}

TEST(FreshBuffer, HasTheMetadataPageOfTheSpecificationAndNothingElse) {
    World world({.cpu_id = 0x1234});
    const Bytes expected = page_of({
        {0, kMagic},
        {8, {0x01, 0x00, 0x00, 0x00}},      // version
        {12, {0x34, 0x12}},                 // cpu_id
        {16, kCapacity256},                 // capacity
        {24, kDataOffset},                  // data_offset
        {32, {0x01, 0, 0, 0, 0, 0, 0, 0}},  // generation: starts at 1
    });
    EXPECT_EQ(world.first().page(), expected);
    EXPECT_EQ(world.first().memory.data_bytes(0, 512), filled(512, 0));
}

TEST(FreshBuffer, BeginsAtAnyPosition) {
    World world({.capacity_bytes = 512, .start_pos = 0xFEDCBA9876543210, .generation = 0x0102});
    const Bytes expected = page_of({
        {0, kMagic},
        {8, {0x01}},
        {16, kCapacity512},
        {24, kDataOffset},
        {32, {0x02, 0x01}},                                      // generation
        {64, {0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE}},  // write_pos
        {72, {0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE}},  // tail_pos
    });
    EXPECT_EQ(world.first().page(), expected);
}

TEST(FreshBuffer, IsRefusedForACapacityOrVersionThatIsNotValid) {
    RingMemory memory(4096);
    std::vector<kmes_boundary> index(16);
    kmes_buffer buffer;
    kmes_buffer_setup setup{};
    setup.mapping = memory.base();
    setup.index = index.data();
    for (const std::uint64_t capacity : {0ull, 1ull, 128ull, 255ull, 257ull, 4095ull, 1ull << 32}) {
        setup.capacity_bytes = capacity;
        setup.version = KMES_VERSION_1;
        EXPECT_EQ(kmes_buffer_init(&buffer, &setup), -EINVAL) << capacity;
        EXPECT_EQ(kmes_index_entries(capacity), 0u) << capacity;
    }
    setup.capacity_bytes = 4096;
    for (const std::uint32_t version : {0u, 2u, 0xFFFFFFFFu}) {
        setup.version = version;
        EXPECT_EQ(kmes_buffer_init(&buffer, &setup), -EINVAL) << version;
    }
    EXPECT_EQ(memory.page_bytes(), filled(4096, 0)) << "nothing may be written";
}

// 5.1.6, the magic last, byte by byte: a page with the magic is complete.
TEST(FreshBuffer, HasItsMagicLast) {
    RingMemory memory(4096);
    std::vector<kmes_boundary> index(kmes_index_entries(4096));
    kmes_buffer buffer;
    kmes_buffer_setup setup{};
    setup.mapping = memory.base();
    setup.index = index.data();
    setup.capacity_bytes = 4096;
    setup.version = KMES_VERSION_1;
    std::vector<std::ptrdiff_t> offsets;
    int notes = 0;  // that new data begins here: for tools, before anything else
    {
        ScopedHook hook([&](const kmes_order_access& access) {
            const std::ptrdiff_t at =
                static_cast<const std::uint8_t*>(access.address) - memory.base();
            if (access.bytes) return offsets.push_back(at);
            EXPECT_EQ(at, 4096);
            EXPECT_TRUE(offsets.empty());
            notes++;
        });
        ASSERT_EQ(kmes_buffer_init(&buffer, &setup), 0);
    }
    EXPECT_EQ(notes, 1);
    ASSERT_EQ(offsets.size(), 7u + 8u);
    EXPECT_EQ(std::vector<std::ptrdiff_t>(offsets.begin() + 7, offsets.end()),
              std::vector<std::ptrdiff_t>({0, 1, 2, 3, 4, 5, 6, 7}));
}

// E13: one entry for 1/16 of a small buffer, or for 4 KiB of a large one.
TEST(FreshBuffer, HasAnIndexOfItsSize) {
    for (std::uint64_t capacity = 256; capacity <= 65536; capacity *= 2)
        EXPECT_EQ(kmes_index_entries(capacity), 16u) << capacity;
    for (std::uint64_t capacity = 131072; capacity <= 1u << 31; capacity *= 2)
        EXPECT_EQ(kmes_index_entries(capacity), capacity / 4096) << capacity;
}

TEST(Wrap, IsOneContiguousWriteOverTheEndOfTheData) {
    World world({.start_pos = 240});
    world.now_ns = 7;
    ASSERT_EQ(world.emit("t", "pay", KMES_ORIGIN_LCS), 0);
    const Bytes before_the_end = {
        0x21, 0, 0, 0,              // 240: event_size: 33
        0x1E, 0, 0, 0,              // 244: header_size: 30
        0x07, 0, 0, 0, 0, 0, 0, 0,  // 248: timestamp; ends at 256
    };
    const Bytes from_the_start = {
        0x01, 0,    0,   0, 0, 0, 0, 0,  // 0: sequence
        0x00, 0x00,                      // 8: cpu_id
        0x03,                            // 10: origin_class: LCS
        0x01, 0x00,                      // 11: type_len
        't',                             // 13: type
        'p',  'a',  'y',                 // 14: payload
    };
    settle_mirror();
    EXPECT_EQ(world.first().memory.data_bytes(0, 256),
              joined({from_the_start, filled(240 - 17, 0), before_the_end}));
    EXPECT_EQ(world.first().memory.data_bytes(240, 33), joined({before_the_end, from_the_start}));
    const Bytes page = page_of({
        {0, kMagic},
        {8, {0x01}},
        {16, kCapacity256},
        {24, kDataOffset},
        {32, {0x01}},
        {64, {0x11, 0x01}},  // write_pos: 240 + 33 = 273
        {72, {0xF0}},        // tail_pos: 240
    });
    EXPECT_EQ(world.first().page(), page);
}

TEST(Overwrite, MovesTheTailPastWholeEventsAndNoFurther) {
    World world({});
    for (int i = 0; i < 3; i++) ASSERT_EQ(world.emit_sized(100), 0);
    const Bytes second_header = {
        0x64, 0, 0, 0, 0x1E, 0,   0, 0,  // event_size 100, header_size 30
        0xE8, 3, 0, 0, 0,    0,   0, 0,  // timestamp 1000
        0x02, 0, 0, 0, 0,    0,   0, 0,  // sequence 2
        0x00, 0, 0, 1, 0,    't',        // cpu_id, origin_class, type_len, type
    };
    const Bytes third_header = {
        0x64, 0, 0, 0, 0x1E, 0,   0, 0, 0xE8, 3, 0, 0,
        0,    0, 0, 0, 0x03, 0,   0, 0, 0,    0, 0, 0,  // sequence 3
        0x00, 0, 0, 1, 0,    't',
    };
    EXPECT_EQ(world.first().survivors(),
              joined({second_header, filled(70, 2), third_header, filled(70, 3)}));
    const Bytes page = page_of({
        {0, kMagic},
        {8, {0x01}},
        {16, kCapacity256},
        {24, kDataOffset},
        {32, {0x01}},
        {64, {0x2C, 0x01}},  // write_pos: 300
        {72, {0x64}},        // tail_pos: 100, the second event
    });
    EXPECT_EQ(world.first().page(), page);
    /* 300 - 256 = 44 bytes of the third event are where the first began. */
    settle_mirror();
    EXPECT_EQ(world.first().memory.data_bytes(0, 44), filled(44, 3));
    EXPECT_EQ(world.first().memory.data_bytes(44, 56), filled(56, 1))
        << "what is left of the first";
    EXPECT_EQ(world.cpu.statistics.overwritten, 1u);
}

TEST(Drop, UsesTheSequenceNumberAndWritesNothing) {
    World world({});
    ASSERT_EQ(world.emit_sized(129), -ENOSPC);  // 5.1.7 step 5: over 50 % of 256
    const Bytes untouched =
        page_of({{0, kMagic}, {8, {0x01}}, {16, kCapacity256}, {24, kDataOffset}, {32, {0x01}}});
    EXPECT_EQ(world.first().page(), untouched);
    EXPECT_EQ(world.first().memory.data_bytes(0, 512), filled(512, 0));
    ASSERT_EQ(world.emit("t", ""), 0);
    const Bytes after = {
        0x1E, 0, 0, 0, 0x1E, 0,   0, 0,  // a payload of zero bytes is valid
        0xE8, 3, 0, 0, 0,    0,   0, 0,  // timestamp 1000
        0x02, 0, 0, 0, 0,    0,   0, 0,  // sequence 2: 1 was used
        0x00, 0, 0, 1, 0,    't',
    };
    EXPECT_EQ(world.first().survivors(), after);
    EXPECT_EQ(world.cpu.statistics.dropped, 1u);
}

/* 5.1.7, last rule; event-model.md, Batches: all events have the same timestamp. */
TEST(Batch, ShowsNothingBeforeItsEndAndSharesOneTimestamp) {
    World world({});
    const Bytes untouched = world.first().page();
    kmes_batch batch;
    world.now_ns = 0x0B;
    kmes_batch_begin(&world.cpu, &batch);
    world.now_ns = 0x0C;
    ASSERT_EQ(world.batch_emit_sized(batch, 31), 0);
    ASSERT_EQ(world.batch_emit_sized(batch, 200), -ENOSPC) << "the kernel batch goes on after it";
    ASSERT_EQ(world.batch_emit_sized(batch, 32), 0);
    EXPECT_EQ(world.first().page(), untouched);
    kmes_batch_end(&world.cpu, &batch);
    const Bytes expected = {
        0x1F, 0, 0, 0, 0x1E, 0,   0, 0,  // event_size 31
        0x0B, 0, 0, 0, 0,    0,   0, 0,  // timestamp of the batch
        0x01, 0, 0, 0, 0,    0,   0, 0,  // sequence 1
        0x00, 0, 0, 1, 0,    't', 1,     // payload
        0x20, 0, 0, 0, 0x1E, 0,   0, 0,  // event_size 32
        0x0B, 0, 0, 0, 0,    0,   0, 0,  // the same timestamp
        0x03, 0, 0, 0, 0,    0,   0, 0,  // sequence 3: 2 was dropped
        0x00, 0, 0, 1, 0,    't', 3, 3,
    };
    EXPECT_EQ(world.first().survivors(), expected);
    EXPECT_EQ(world.first().page(), page_of({{0, kMagic},
                                             {8, {0x01}},
                                             {16, kCapacity256},
                                             {24, kDataOffset},
                                             {32, {0x01}},
                                             {64, {0x3F}}}));  // write_pos: 63
}

/* E8: 5 x 60 bytes do not fit beyond what is published. Before the tail reaches write_pos,
 * everything written so far is published. */
TEST(Batch, LargerThanTheRoomIsPublishedBeforeTheTailReachesIt) {
    World world({});
    for (int i = 0; i < 2; i++) ASSERT_EQ(world.emit_sized(60), 0);  // published: 0..120
    kmes_batch batch;
    kmes_batch_begin(&world.cpu, &batch);
    /* 180 and 240 have room. 300: the tail moves to 60. 360: it must move to 120, which is
     * write_pos, so the three events before it are published first. 420: to 180. */
    const std::uint64_t expected_write[] = {120, 120, 120, 300, 300};
    const std::uint64_t expected_tail[] = {0, 0, 60, 120, 180};
    for (int i = 0; i < 5; i++) {
        ASSERT_EQ(world.batch_emit_sized(batch, 60), 0);
        EXPECT_EQ(world.first().shared_write_pos(), expected_write[i]) << i;
        EXPECT_EQ(world.first().shared_tail_pos(), expected_tail[i]) << i;
    }
    kmes_batch_end(&world.cpu, &batch);
    EXPECT_EQ(world.first().page(), page_of({{0, kMagic},
                                             {8, {0x01}},
                                             {16, kCapacity256},
                                             {24, kDataOffset},
                                             {32, {0x01}},
                                             {64, {0xA4, 0x01}},  // write_pos: 420
                                             {72, {0xB4}}}));     // tail_pos: 180
}

}  // namespace
}  // namespace kmes::tests
