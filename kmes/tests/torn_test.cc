// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Reads during which the producer's tail passes (5.1.8.1 steps 4 and 5 with E4, E6, E20, E21). Torn
 * bytes are never trusted, events after the new tail are kept, and each case is counted correctly.
 */
#include <gtest/gtest.h>

#include <vector>

#include "kmes/tests/test_reader.h"
#include "kmes/tests/world.h"

namespace kmes::tests {
namespace {

/*
 * Four events of 64 bytes, the first delivered. While the header of the second is copied, after its
 * sizes, an event arrives whose payload overwrites the rest of that header. The mixture is a valid
 * header with sequence number 0, which is not newer than the delivered one.
 */
class TornHeader : public testing::Test {
  protected:
    void SetUp() override {
        for (int i = 0; i < 4; i++) ASSERT_EQ(world.emit_sized(64_b), 0);
        ASSERT_EQ(reader.open(), 0);
        ASSERT_EQ(reader.next(), KMES_READ_EVENT);
        payload[64_b + offsetof(kmes_event_header, type_len) - KMES_EVENT_MIN_BYTES] = 1;
    }

    void overwrite(const kmes_order_access& access) {
        if (access.label != KMES_ORDER_READ_DATA || ++words != 2) return;
        kmes_event_input input{};
        input.type = "t";
        input.type_len = 1;
        input.payload = payload.data();
        input.payload_len = static_cast<std::uint32_t>(payload.size());
        ASSERT_EQ(kmes_cpu_emit(&world.cpu, &input), 0);
    }

    void expect_torn_once() {
        EXPECT_EQ(reader.reader.statistics.torn, 1u);
        EXPECT_EQ(reader.reader.statistics.not_newer, 0u) << "of a header that never was";
        EXPECT_EQ(reader.reader.statistics.laps, 0u) << "it stands at the tail, not below it";
        EXPECT_EQ(reader.reader.statistics.corrupt, 0u);
    }

    World world{{.capacity_bytes = 256_b}};
    Reader reader{world};
    std::vector<char> payload = std::vector<char>(128_b - KMES_EVENT_MIN_BYTES, 0);
    int words = 1000;  // that were read; a test begins at 0
    ScopedHook hook{[this](const kmes_order_access& access) { overwrite(access); }};
};

TEST_F(TornHeader, IsNotTakenForAnOldEventByTheCopy) {
    words = 0;
    ASSERT_EQ(reader.next(), KMES_READ_EVENT);
    EXPECT_EQ(reader.view.sequence, 3u);
    EXPECT_EQ(reader.view.lost_before, 1u);
    expect_torn_once();
}

TEST_F(TornHeader, IsNotTakenForAnOldEventInPlace) {
    words = 0;
    ASSERT_EQ(kmes_reader_peek(&reader.reader, &reader.view), KMES_READ_EVENT);
    EXPECT_EQ(reader.view.sequence, 3u);
    expect_torn_once();
}

TEST_F(TornHeader, IsNotTakenForAnOldEventByABulkThatHasNoRoomForIt) {
    words = 0;
    kmes_bulk bulk;
    std::uint32_t needed = 0;
    EXPECT_EQ(kmes_reader_bulk(&reader.reader, reader.room, 63_b, &bulk, &needed), -EMSGSIZE);
    EXPECT_EQ(needed, 64_b);
    expect_torn_once();
}

/* A bulk over four events. While their bytes are copied, after the header of the first, this
 * many events of the same size arrive. */
struct TornBulk {
    explicit TornBulk(int count) {
        for (int i = 0; i < 4; i++) EXPECT_EQ(world.emit_sized(60_b), 0);
        EXPECT_EQ(reader.open(), 0);
        int words = 0;
        ScopedHook hook([&](const kmes_order_access& access) {
            if (access.label == KMES_ORDER_RECHECK_TAIL) loads_of_tail++;
            if (access.label != KMES_ORDER_READ_DATA || ++words != 20) return;
            for (int i = 0; i < count; i++) ASSERT_EQ(world.emit_sized(60_b), 0);
        });
        EXPECT_EQ(
            kmes_reader_bulk(&reader.reader, reader.room, sizeof(reader.room), &bulk, nullptr),
            KMES_READ_EVENT);
    }

    std::vector<std::uint64_t> sequences() {
        std::vector<std::uint64_t> found;
        while (kmes_bulk_next(&reader.reader, &bulk, &reader.view))
            found.push_back(reader.view.sequence);
        return found;
    }

    World world{{.capacity_bytes = 256_b, .start_pos = 1024_b}};
    Reader reader{world};
    kmes_bulk bulk{};
    int loads_of_tail = 0;
};

// A slow reader at the tail would never get anything if one lost event discarded the whole copy.
TEST(TornBulk, KeepsTheRestOfTheCopyAfterTheNewTail) {
    TornBulk torn(1);
    EXPECT_EQ(torn.bulk.left_bytes, 180_b);
    EXPECT_EQ(torn.sequences(), Sequences({2, 3, 4}));
    EXPECT_EQ(torn.loads_of_tail, 1);
    EXPECT_EQ(torn.reader.reader.statistics.torn, 1u);
}

TEST(TornBulk, IsNeverEmptyWhereThereIsAnEvent) {
    TornBulk torn(4);
    EXPECT_GE(torn.bulk.left_bytes, 60_b);
    EXPECT_EQ(torn.sequences(), Sequences({5, 6, 7, 8}));
}

}  // namespace
}  // namespace kmes::tests
