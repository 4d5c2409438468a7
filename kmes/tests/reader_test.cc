// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The reader's calls, one test for each promise of reader.h: opening, reading in three forms,
 * switching, losses (5.1.8 with E7, E9, E11, E14, E15, E19, E20, E21, E25). Bulks
 * are in bulk_test.cc, sleep is in sleep_test.cc, torn reads are in torn_test.cc.
 */
#include "kmes/reader.h"

#include <gtest/gtest.h>

#include "kmes/tests/test_reader.h"
#include "kmes/tests/world.h"

namespace kmes::tests {
namespace {

TEST(ReaderOpen, RefusesWhatIsNoBufferOfAVersionThatItKnows) {
    const struct {
        std::size_t offset;
        std::uint8_t byte;
        int error;
    } rows[] = {
        {0, 'k', -EPROTO},         {7, 0, -EPROTO},  // magic, byte by byte
        {8, 2, -EPROTONOSUPPORT},                    // version 2
        {8, 0, -EPROTONOSUPPORT},                    // version 0
        {11, 1, -EPROTONOSUPPORT},                   // version 2^24 + 1
        {16, 1, -EINVAL},                            // capacity 257: no power of two
        {17, 0, -EINVAL},                            // capacity 0
        {17, 2, -EINVAL},                            // capacity 512: not what is mapped (E14)
        {23, 0x80, -EINVAL},                         // capacity 2^63 + 256
        {25, 0x40, -EINVAL},                         // data_offset 16384: that of no form
        {31, 1, -EINVAL},                            // data_offset 2^56 and more
    };
    for (const auto& row : rows) {
        World world({});
        world.first().memory.base()[row.offset] = row.byte;
        Reader reader(world);
        EXPECT_EQ(reader.open(), row.error) << row.offset;
        EXPECT_EQ(world.attaches, world.detaches) << "what was attached is detached";
    }
}

// event-model.md: a reserved byte other than zero is no reason to refuse a buffer.
TEST(ReaderOpen, DoesNotReadReservedBytes) {
    World world({});
    for (const int offset :
         {14, 15, 40, 63, 80, 127, 133, 191, 192, 4095, static_cast<int>(KMES_METADATA_BYTES) - 1})
        world.first().memory.base()[offset] = 0xFF;
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    ASSERT_EQ(world.emit_sized(30_b), 0);
    EXPECT_EQ(reader.drain(), Sequences({1}));
}

TEST(ReaderOpen, RefusesAMappingThatIsTooSmallToRead) {
    World world({});
    world.on_attach = [&](kmes_mapping* mapping) {
        world.describe_current(mapping);
        mapping->mapped_bytes = KMES_METADATA_BYTES + 512_b - 1;
        return 0;
    };
    Reader reader(world);
    EXPECT_EQ(reader.open(), -EINVAL);
}

// The size is checked first: nothing is loaded from a mapping that is too small.
TEST(ReaderOpen, ReadsNothingOfAMappingThatIsTooSmall) {
    const std::uint64_t least = kmes_mapping_bytes(KMES_VERSION_1, KMES_CAPACITY_MIN_BYTES);
    for (const std::uint64_t bytes : {std::uint64_t{0}, std::uint64_t{64}, least - 2, least - 1}) {
        World world({});
        world.on_attach = [&](kmes_mapping* mapping) {
            world.describe_current(mapping);
            mapping->mapped_bytes = bytes;
            return 0;
        };
        int accesses = 0;
        ScopedHook hook([&](const kmes_order_access&) { accesses++; });
        Reader reader(world);
        EXPECT_EQ(reader.open(), -EINVAL) << bytes;
        EXPECT_EQ(accesses, 0) << bytes;
    }
}

TEST(ReaderOpen, HandsOnWhatTheAttachFunctionsSay) {
    World world({});
    Reader reader(world);
    world.on_attach = [](kmes_mapping*) { return -EAGAIN; };
    EXPECT_EQ(reader.open(), -EAGAIN);
    EXPECT_EQ(world.detaches, 0) << "there was nothing to detach";
    world.on_attach = nullptr;
    world.on_identify = [](kmes_mapping*) { return -EPERM; };
    EXPECT_EQ(reader.open(), -EPERM);
    EXPECT_EQ(world.detaches, 1);
    kmes_reader_close(&reader.reader);
    EXPECT_EQ(world.detaches, 1) << "one that was not opened stays so";
}

// E11: it begins at tail_pos.
TEST(ReaderOpen, BeginsAtTheTail) {
    World world({.start_pos = 0x7FFFFFFFFFFFFF00});
    for (int i = 0; i < 4; i++) ASSERT_EQ(world.emit_sized(100_b), 0);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    EXPECT_EQ(reader.drain(), Sequences({3, 4}));
    EXPECT_EQ(reader.reader.statistics.lost, 0u) << "events before the first are not counted";
}

// E19: a buffer that was retired before its generation was loaded is detached, and the next one
// taken.
TEST(ReaderOpen, TakesTheLivingBufferWhenTheFirstWasRetiredMeanwhile) {
    World world({});
    bool swapped = false;
    Reader reader(world);
    ScopedHook hook([&](const kmes_order_access& access) {
        if (access.label != KMES_ORDER_LOAD_GENERATION || swapped) return;
        swapped = true;
        ASSERT_EQ(world.swap(512_b), 0);
    });
    ASSERT_EQ(reader.open(), 0);
    EXPECT_EQ(reader.reader.mapping.base, world.current().memory.base());
    EXPECT_EQ(world.attaches, 2);
    EXPECT_EQ(world.detaches, 1);
    ASSERT_EQ(world.emit_sized(30_b), 0);
    EXPECT_EQ(reader.drain(), Sequences({1}));
}

// A producer that swaps at every attach cannot delay the reader forever; a nudge frees it.
TEST(ReaderOpen, EndsAgainstAProducerThatSwapsAtEveryAttach) {
    World world({});
    world.on_identify = [&](kmes_mapping* mapping) {
        world.describe_current(mapping);
        mapping->inode += 1000;
        return 0;
    };
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    EXPECT_EQ(world.attaches, world.detaches + 1);
    world.on_identify = nullptr;
    ASSERT_EQ(world.emit_sized(30_b), 0);
    EXPECT_EQ(reader.drain(), Sequences({1}));
}

TEST(ReaderNext, SaysWhatIsInTheEvent) {
    World world({.last_sequence = 6, .cpu_id = 3});
    world.now_ns = 1234567890123456789;
    ASSERT_EQ(world.emit("type", "payload", KMES_ORIGIN_KMES), 0);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    ASSERT_EQ(reader.next(), KMES_READ_EVENT);
    const Delivered event = Delivered::from(reader.view);
    EXPECT_EQ(event.sequence, 7u);
    EXPECT_EQ(event.timestamp, 1234567890123456789u);
    EXPECT_EQ(event.cpu_id, 3);
    EXPECT_EQ(event.origin_class, KMES_ORIGIN_KMES);
    EXPECT_EQ(event.type, "type");
    EXPECT_EQ(event.payload, "payload");
    EXPECT_EQ(reader.view.event_size, KMES_EVENT_FIXED_BYTES + 11);
    EXPECT_EQ(reader.view.header_size, KMES_EVENT_FIXED_BYTES + 4);
    EXPECT_EQ(reader.next(), KMES_READ_EMPTY);
    EXPECT_EQ(reader.next(), KMES_READ_EMPTY);
}

// A hostile producer may name another CPU in the header of its event.
TEST(ReaderNext, TheCpuOfAnEventIsThatOfItsRing) {
    constexpr std::size_t kCpuIdInHeader = 24;
    World world({.cpu_id = 3});
    ASSERT_EQ(world.emit_sized(30_b), 0);
    world.first().memory.base()[KMES_METADATA_BYTES + kCpuIdInHeader] = 9;
    Reader copied(world), in_place(world), bulked(world), taken(world);
    kmes_bulk bulk{};
    for (Reader* reader : {&copied, &in_place, &bulked, &taken}) ASSERT_EQ(reader->open(), 0);
    ASSERT_EQ(copied.next(), KMES_READ_EVENT);
    ASSERT_EQ(kmes_reader_peek(&in_place.reader, &in_place.view), KMES_READ_EVENT);
    ASSERT_EQ(kmes_reader_bulk(&bulked.reader, bulked.room, sizeof(bulked.room), &bulk, nullptr),
              KMES_READ_EVENT);
    ASSERT_TRUE(kmes_bulk_next(&bulked.reader, &bulk, &bulked.view));
    ASSERT_EQ(kmes_reader_bulk(&taken.reader, taken.room, sizeof(taken.room), &bulk, nullptr),
              KMES_READ_EVENT);
    ASSERT_EQ(kmes_bulk_take(&taken.reader, &bulk, &taken.view, 1), 1u);
    for (const Reader* reader : {&copied, &in_place, &bulked, &taken})
        EXPECT_EQ(reader->view.cpu_id, 3);
}

// event-model.md: the payload begins at header_size, and not at 29 + type_len.
TEST(ReaderNext, FindsThePayloadAfterALongerHeader) {
    World world({});
    kmes_event_input input{};
    input.type = "ty";
    input.type_len = 2;
    input.payload = "pay";
    input.payload_len = 3;
    input.header_extra_len = 70;
    ASSERT_EQ(kmes_cpu_emit(&world.cpu, &input), 0);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    ASSERT_EQ(reader.next(), KMES_READ_EVENT);
    EXPECT_EQ(Delivered::from(reader.view).type, "ty");
    EXPECT_EQ(Delivered::from(reader.view).payload, "pay");
}

// The reader reads no unpublished byte, not even one that it would discard.
TEST(ReaderNext, ReadsNoBytesWhereNothingIsPublished) {
    World world({});
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    int reads = 0;
    ScopedHook hook([&](const kmes_order_access& access) {
        if (access.label == KMES_ORDER_READ_DATA) reads++;
    });
    EXPECT_EQ(reader.next(), KMES_READ_EMPTY);
    EXPECT_EQ(kmes_reader_peek(&reader.reader, &reader.view), KMES_READ_EMPTY);
    kmes_bulk bulk;
    EXPECT_EQ(kmes_reader_bulk(&reader.reader, reader.room, 64, &bulk, nullptr), KMES_READ_EMPTY);
    EXPECT_EQ(reads, 0);
}

TEST(ReaderNext, SaysHowMuchRoomAnEventTakesAndConsumesNothing) {
    World world({});
    ASSERT_EQ(world.emit_sized(40_b), 0);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    EXPECT_EQ(kmes_reader_next(&reader.reader, reader.room, 39_b, &reader.view), -EMSGSIZE);
    EXPECT_EQ(reader.view.event_size, 40_b);
    EXPECT_EQ(reader.reader.statistics.delivered, 0u);
    EXPECT_EQ(kmes_reader_next(&reader.reader, reader.room, 40_b, &reader.view), KMES_READ_EVENT);
    EXPECT_EQ(reader.view.sequence, 1u);
}

// 5.1.9: "Set read_pos = tail_pos. The gap represents lost events, detectable as a sequence gap."
TEST(ReaderNext, GoesOnAtTheTailAfterALapAndCountsWhatWasLost) {
    World world({});
    ASSERT_EQ(world.emit_sized(60_b), 0);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    EXPECT_EQ(reader.drain(), Sequences({1}));
    for (int i = 0; i < 8; i++) ASSERT_EQ(world.emit_sized(60_b), 0);
    ASSERT_EQ(world.emit_sized(129_b), -ENOSPC);  // a gap of the other kind: 10
    ASSERT_EQ(world.emit_sized(60_b), 0);
    EXPECT_EQ(reader.drain(), Sequences({7, 8, 9, 11}));
    EXPECT_EQ(reader.reader.statistics.laps, 1u);
    EXPECT_EQ(reader.reader.statistics.lost, 6u) << "2 to 6, and 10";
    EXPECT_EQ(reader.reader.statistics.delivered, 5u);
}

TEST(ReaderPeek, ShowsTheEventInPlaceAndConsumesItOnRelease) {
    World world({});
    ASSERT_EQ(world.emit("t", "abc"), 0);
    ASSERT_EQ(world.emit("u", "def"), 0);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    kmes_event_view view;
    EXPECT_FALSE(kmes_reader_release(&reader.reader)) << "nothing was peeked";
    for (int repeat = 0; repeat < 2; repeat++) {
        ASSERT_EQ(kmes_reader_peek(&reader.reader, &view), KMES_READ_EVENT);
        EXPECT_EQ(view.payload, world.first().memory.data() + KMES_EVENT_MIN_BYTES);
        EXPECT_TRUE(kmes_reader_peek_is_whole(&reader.reader));
        EXPECT_TRUE(kmes_reader_peek_is_whole(&reader.reader));
    }
    EXPECT_TRUE(kmes_reader_release(&reader.reader));
    EXPECT_FALSE(kmes_reader_release(&reader.reader)) << "once is enough";
    ASSERT_EQ(kmes_reader_peek(&reader.reader, &view), KMES_READ_EVENT);
    EXPECT_EQ(Delivered::from(view).payload, "def");
    EXPECT_TRUE(kmes_reader_release(&reader.reader));
    EXPECT_EQ(kmes_reader_peek(&reader.reader, &view), KMES_READ_EMPTY);
    EXPECT_EQ(reader.reader.statistics.delivered, 2u);
}

// E6: valid only if the check is repeated after the last use.
TEST(ReaderPeek, SaysWhenTheEventWasOverwrittenInBetween) {
    World world({});
    for (int i = 0; i < 4; i++) ASSERT_EQ(world.emit_sized(60_b), 0);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    kmes_event_view view;
    ASSERT_EQ(kmes_reader_peek(&reader.reader, &view), KMES_READ_EVENT);
    ASSERT_EQ(world.emit_sized(60_b), 0);
    EXPECT_FALSE(kmes_reader_peek_is_whole(&reader.reader));
    EXPECT_FALSE(kmes_reader_release(&reader.reader));
    EXPECT_EQ(reader.drain(), Sequences({2, 3, 4, 5}));
    EXPECT_EQ(reader.reader.statistics.torn, 1u);
}

// A peek that finds nothing ends the one before it.
TEST(ReaderPeek, EndsWhenTheNextOneFindsNothingToShow) {
    World world({});
    ASSERT_EQ(world.emit_sized(60_b), 0);
    Reader reader(world);
    reader.config.stop_on_corrupt = true;
    ASSERT_EQ(reader.open(), 0);
    kmes_event_view view;
    ASSERT_EQ(kmes_reader_peek(&reader.reader, &view), KMES_READ_EVENT);
    world.first().memory.data()[offsetof(kmes_event_header, type_len)] = 0;
    EXPECT_EQ(kmes_reader_peek(&reader.reader, &view), -EBADMSG);
    EXPECT_FALSE(kmes_reader_peek_is_whole(&reader.reader));
    EXPECT_FALSE(kmes_reader_release(&reader.reader));
    EXPECT_EQ(reader.reader.statistics.delivered, 0u);
}

TEST(ReaderPeek, EndsWhenTheNextEventIsReadAnotherWay) {
    World world({});
    for (int i = 0; i < 3; i++) ASSERT_EQ(world.emit_sized(60_b + i), 0);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    kmes_event_view view;
    ASSERT_EQ(kmes_reader_peek(&reader.reader, &view), KMES_READ_EVENT);
    ASSERT_EQ(reader.next(), KMES_READ_EVENT);
    EXPECT_FALSE(kmes_reader_release(&reader.reader)) << "that event was delivered already";
    ASSERT_EQ(kmes_reader_peek(&reader.reader, &view), KMES_READ_EVENT);
    kmes_bulk bulk;
    ASSERT_EQ(kmes_reader_bulk(&reader.reader, reader.room, 61_b, &bulk, nullptr), KMES_READ_EVENT);
    ASSERT_TRUE(kmes_bulk_next(&reader.reader, &bulk, &view));
    EXPECT_FALSE(kmes_reader_release(&reader.reader));
    EXPECT_EQ(reader.drain(), Sequences({3}));
}

// E21: an old event needs no room.
TEST(ReaderNext, PassesOverWhatIsNotNewerWithoutRoomForIt) {
    World world({});
    ASSERT_EQ(world.emit_sized(100_b), 0);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    EXPECT_EQ(reader.drain(), Sequences({1}));
    ASSERT_EQ(world.swap(512_b), 0);
    ASSERT_EQ(world.emit_sized(40_b), 0);
    ASSERT_EQ(kmes_reader_next(&reader.reader, reader.room, 64_b, &reader.view), KMES_READ_EVENT);
    EXPECT_EQ(reader.view.sequence, 2u);
}

TEST(ReaderClose, DetachesOnce) {
    World world({});
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    kmes_reader_close(&reader.reader);
    kmes_reader_close(&reader.reader);
    EXPECT_EQ(world.detaches, 1);
}

}  // namespace
}  // namespace kmes::tests
