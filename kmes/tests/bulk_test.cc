// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Many events with one check (reader.h): a copy's size and end, and the next event for a caller
 * that stops early (5.1.8.1 with E6, E7, E21). Torn bulks are in torn_test.cc.
 */
#include <gtest/gtest.h>

#include <initializer_list>
#include <vector>

#include "kmes/reader.h"
#include "kmes/tests/test_reader.h"
#include "kmes/tests/world.h"

namespace kmes::tests {
namespace {

/* A reader of events with these sizes, in a ring that can contain all. */
struct Bulk {
    explicit Bulk(std::initializer_list<std::uint64_t> sizes, std::uint64_t bulk_bytes = 0) {
        for (const std::uint64_t bytes : sizes) EXPECT_EQ(world.emit_sized(bytes), 0);
        reader.config.bulk_bytes = bulk_bytes;
        EXPECT_EQ(reader.open(), 0);
    }

    int read(std::uint64_t room) {
        return kmes_reader_bulk(&reader.reader, reader.room, room, &bulk, nullptr);
    }

    /* Takes all events of a bulk. */
    std::vector<std::uint64_t> take(std::uint64_t room = sizeof(Reader::room)) {
        std::vector<std::uint64_t> sequences;
        EXPECT_EQ(read(room), KMES_READ_EVENT);
        while (kmes_bulk_next(&reader.reader, &bulk, &reader.view)) {
            EXPECT_TRUE(is_self_describing(Delivered::from(reader.view))) << reader.view.sequence;
            sequences.push_back(reader.view.sequence);
        }
        EXPECT_EQ(bulk.left_bytes, 0u);
        return sequences;
    }

    World world{{.capacity_bytes = 32768_b}};
    Reader reader{world};
    kmes_bulk bulk{};
};

TEST(ReaderBulk, GivesAsManyWholeEventsAsFit) {
    World world({});
    for (int i = 0; i < 4; i++) ASSERT_EQ(world.emit_sized(60_b), 0);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    kmes_bulk bulk;
    std::uint32_t needed = 0;
    EXPECT_EQ(kmes_reader_bulk(&reader.reader, reader.room, 59_b, &bulk, &needed), -EMSGSIZE);
    EXPECT_EQ(needed, 60_b);
    EXPECT_EQ(kmes_reader_bulk(&reader.reader, reader.room, 59_b, &bulk, nullptr), -EMSGSIZE);
    ASSERT_EQ(kmes_reader_bulk(&reader.reader, reader.room, 179_b, &bulk, &needed),
              KMES_READ_EVENT);
    kmes_event_view view;
    for (const std::uint64_t sequence : {1u, 2u}) {
        ASSERT_TRUE(kmes_bulk_next(&reader.reader, &bulk, &view));
        EXPECT_EQ(view.sequence, sequence);
        EXPECT_TRUE(is_self_describing(Delivered::from(view)));
    }
    EXPECT_FALSE(kmes_bulk_next(&reader.reader, &bulk, &view));
    ASSERT_EQ(kmes_reader_bulk(&reader.reader, reader.room, 4096, &bulk, &needed), KMES_READ_EVENT);
    ASSERT_TRUE(kmes_bulk_next(&reader.reader, &bulk, &view));
    ASSERT_TRUE(kmes_bulk_next(&reader.reader, &bulk, &view));
    EXPECT_FALSE(kmes_bulk_next(&reader.reader, &bulk, &view));
    EXPECT_EQ(kmes_reader_bulk(&reader.reader, reader.room, 4096, &bulk, &needed), KMES_READ_EMPTY);
    EXPECT_EQ(reader.reader.statistics.delivered, 4u);
}

// E7: the reader does not report the needed room of an event that was overwritten meanwhile.
TEST(ReaderBulk, AsksForTheRoomOfTheEventThatIsStillThere) {
    World world({});
    for (int i = 0; i < 4; i++) ASSERT_EQ(world.emit_sized(50_b + i), 0);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    bool done = false;
    kmes_bulk bulk;
    std::uint32_t needed = 0;
    ScopedHook hook([&](const kmes_order_access& access) {
        if (access.label != KMES_ORDER_DATA_FENCE || done) return;
        done = true;
        ASSERT_EQ(world.emit_sized(60_b), 0);
    });
    EXPECT_EQ(kmes_reader_bulk(&reader.reader, reader.room, 40_b, &bulk, &needed), -EMSGSIZE);
    EXPECT_EQ(needed, 50_b + 1) << "of the second: the first is gone";
    EXPECT_EQ(reader.reader.statistics.torn, 1u);
}

// E21: old events are also counted one by one if they came in a bulk.
TEST(ReaderBulk, CountsWhatIsNotNewer) {
    World world({});
    for (int i = 0; i < 3; i++) ASSERT_EQ(world.emit_sized(40_b), 0);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    EXPECT_EQ(reader.drain(), Sequences({1, 2, 3}));
    ASSERT_EQ(world.swap(512_b), 0);
    kmes_bulk bulk;
    ASSERT_EQ(kmes_reader_bulk(&reader.reader, reader.room, 4096, &bulk, nullptr), KMES_READ_EVENT);
    EXPECT_FALSE(kmes_bulk_next(&reader.reader, &bulk, &reader.view));
    EXPECT_EQ(reader.reader.statistics.not_newer, 3u);
    EXPECT_EQ(reader.reader.statistics.delivered, 3u);
}

// E21: an old event needs no room.
TEST(ReaderBulk, PassesOverWhatIsNotNewerWithoutRoomForIt) {
    World world({});
    ASSERT_EQ(world.emit_sized(100_b), 0);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    EXPECT_EQ(reader.drain(), Sequences({1}));
    ASSERT_EQ(world.swap(512_b), 0);
    ASSERT_EQ(world.emit_sized(40_b), 0);
    kmes_bulk bulk;
    std::uint32_t needed = 0;
    ASSERT_EQ(kmes_reader_bulk(&reader.reader, reader.room, 64_b, &bulk, &needed), KMES_READ_EVENT);
    kmes_event_view view;
    ASSERT_TRUE(kmes_bulk_next(&reader.reader, &bulk, &view));
    EXPECT_EQ(view.sequence, 2u);
    EXPECT_EQ(reader.reader.statistics.not_newer, 1u);
}

TEST(ReaderBulk, CopiesAboutWhatTheConfigurationSays) {
    Bulk bulk({60_b, 60_b, 60_b, 60_b, 60_b}, 150_b);
    EXPECT_EQ(bulk.take(), Sequences({1, 2}));
    EXPECT_EQ(bulk.take(), Sequences({3, 4}));
    EXPECT_EQ(bulk.take(), Sequences({5}));
    EXPECT_EQ(bulk.read(4096), KMES_READ_EMPTY);
}

TEST(ReaderBulk, CopiesAnEventThatIsLargerThanThat) {
    Bulk bulk({60_b, 7000, 60_b, 7000}, 150_b);
    EXPECT_EQ(bulk.take(), Sequences({1}));
    EXPECT_EQ(bulk.take(), Sequences({2}));
    EXPECT_EQ(bulk.read(6999), KMES_READ_EVENT) << "the third";
}

TEST(ReaderBulk, CopiesSixKibibytesByDefault) {
    Bulk bulk({3000, 3000, 144, 3000, 3001, 143});
    EXPECT_EQ(bulk.take(), Sequences({1, 2}));
    EXPECT_EQ(bulk.take(), Sequences({3, 4})) << "42 times 144 bytes: the end is in the next event";
    EXPECT_EQ(bulk.take(), Sequences({5, 6}));
}

TEST(ReaderBulk, CopiesNoByteMoreAndNoByteLessThanThat) {
    Bulk bulk({3072, 3072, 40_b});
    EXPECT_EQ(bulk.take(), Sequences({1, 2}));
    Bulk more({1229, 1229, 1229, 1229, 1229, 40_b});
    EXPECT_EQ(more.take(), Sequences({1, 2, 3, 4})) << "five have 6145 bytes";
}

// write_pos is a boundary, whatever the sizes before it.
TEST(ReaderBulk, CopiesAllThatIsPublishedWhereThatFits) {
    Bulk bulk({60_b, 61_b}, 121_b);
    EXPECT_EQ(bulk.take(), Sequences({1, 2}));
}

// The copy ends in the fixed part of a header, in a type, in a payload, and at a boundary.
TEST(ReaderBulk, LeavesAnEventThatItEndsInToTheNextOne) {
    for (std::uint64_t second = 31_b; second <= 60_b; second++) {
        Bulk bulk({60_b, second, 100_b}, 120_b);
        EXPECT_EQ(bulk.take(), Sequences({1, 2})) << second;
        EXPECT_EQ(bulk.take(), Sequences({3})) << second;
        EXPECT_EQ(bulk.reader.reader.statistics.corrupt, 0u);
    }
}

TEST(ReaderBulk, IsReadAgainFromWhereTheCallerStopped) {
    Bulk bulk({60_b, 61_b, 62_b, 63_b});
    ASSERT_EQ(bulk.read(4096), KMES_READ_EVENT);
    ASSERT_TRUE(kmes_bulk_next(&bulk.reader.reader, &bulk.bulk, &bulk.reader.view));
    ASSERT_EQ(bulk.reader.next(), KMES_READ_EVENT);
    EXPECT_EQ(bulk.reader.view.sequence, 2u);
    EXPECT_EQ(bulk.take(), Sequences({3, 4}));
    EXPECT_EQ(bulk.reader.reader.statistics.delivered, 4u);
    EXPECT_EQ(bulk.reader.reader.statistics.lost, 0u);
}

TEST(BulkTake, GivesSoManyViewsAtMostAndSaysHowMany) {
    Bulk bulk({60_b, 61_b, 62_b});
    kmes_event_view views[4] = {};
    ASSERT_EQ(bulk.read(4096), KMES_READ_EVENT);
    EXPECT_EQ(kmes_bulk_take(&bulk.reader.reader, &bulk.bulk, views, 0), 0u);
    ASSERT_EQ(kmes_bulk_take(&bulk.reader.reader, &bulk.bulk, views, 2), 2u);
    EXPECT_EQ(views[0].sequence, 1u);
    EXPECT_EQ(views[1].sequence, 2u);
    EXPECT_TRUE(is_self_describing(Delivered::from(views[1])));
    EXPECT_EQ(views[2].sequence, 0u) << "beyond what was asked for";
    EXPECT_EQ(bulk.bulk.left_bytes, 62_b);
    ASSERT_EQ(kmes_bulk_take(&bulk.reader.reader, &bulk.bulk, views, 4), 1u);
    EXPECT_EQ(views[0].sequence, 3u);
    EXPECT_EQ(kmes_bulk_take(&bulk.reader.reader, &bulk.bulk, views, 4), 0u);
    EXPECT_EQ(bulk.reader.reader.statistics.delivered, 3u);
}

// E21: an event that an older buffer has delivered fills no view.
TEST(BulkTake, LeavesOutWhatIsNotNewer) {
    World world({});
    for (int i = 0; i < 2; i++) ASSERT_EQ(world.emit_sized(40_b), 0);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    EXPECT_EQ(reader.drain(), Sequences({1, 2}));
    ASSERT_EQ(world.swap(512_b), 0);
    ASSERT_EQ(world.emit_sized(40_b), 0);
    kmes_bulk bulk;
    kmes_event_view views[3];
    ASSERT_EQ(kmes_reader_bulk(&reader.reader, reader.room, 4096, &bulk, nullptr), KMES_READ_EVENT);
    ASSERT_EQ(kmes_bulk_take(&reader.reader, &bulk, views, 3), 1u);
    EXPECT_EQ(views[0].sequence, 3u);
    EXPECT_EQ(reader.reader.statistics.not_newer, 2u);
}

}  // namespace
}  // namespace kmes::tests
