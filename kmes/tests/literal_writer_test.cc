// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * 5.1.7 literally, as a separate small writer, and the faults that errata describe; for each, the
 * core in the same situation. Also E12 and E19 with two parties.
 */
#include <gtest/gtest.h>

#include "kmes/tests/test_reader.h"

namespace kmes::tests {
namespace {

/* Reads everything back from the shared page and the ring, as the specification does. */
class LiteralWriter {
  public:
    explicit LiteralWriter(World& world)
        : fields_(world.first().buffer.shared),
          memory_(world.first().memory),
          capacity_(memory_.capacity_bytes()) {}

    std::function<void()> on_clock; /* interrupts it after step 2 */
    std::function<void()> on_step;  /* after each store to the page */

    void emit(std::uint64_t bytes) {
        running_ = *fields_.write_pos;
        write_event(bytes);
        *fields_.write_pos = running_;  // step 8
        if (on_step) on_step();
    }

    /* "Steps 8 and 9 are deferred until all events in the batch have been written." */
    void batch(const std::vector<std::uint64_t>& sizes) {
        running_ = *fields_.write_pos;
        for (const std::uint64_t bytes : sizes) write_event(bytes);
        *fields_.write_pos = running_;
        if (on_step) on_step();
    }

  private:
    void write_event(std::uint64_t bytes) {
        const std::uint64_t sequence = ++sequence_;  // step 2
        const std::uint64_t at = running_;
        const std::function<void()> interrupt = on_clock; /* it may replace itself */
        if (interrupt) interrupt();
        std::uint64_t tail = *fields_.tail_pos;
        while (at + bytes - tail > capacity_) {  // step 6
            std::uint32_t size;
            memcpy(&size, memory_.data() + (tail & (capacity_ - 1)), sizeof(size));
            tail += size;
        }
        *fields_.tail_pos = tail;
        if (on_step) on_step();
        kmes_event_header header{};
        header.event_size = static_cast<std::uint32_t>(bytes);
        header.header_size = KMES_EVENT_MIN_BYTES;
        header.sequence = sequence;
        header.type_len = 1;
        std::uint8_t* to = memory_.data() + (at & (capacity_ - 1));
        memcpy(to, &header, sizeof(header));
        to[KMES_EVENT_FIXED_BYTES] = 't';
        memset(to + KMES_EVENT_MIN_BYTES, static_cast<int>(sequence & 0xFF),
               bytes - KMES_EVENT_MIN_BYTES);
        if (memory_.is_mirrored()) memory_.mirror(to, bytes);
        running_ = at + bytes;
    }

    kmes_fields fields_;
    RingMemory& memory_;
    std::uint64_t capacity_;
    std::uint64_t running_ = 0;
    std::uint64_t sequence_ = 0;
};

/* E8: whether tail_pos was at or beyond write_pos while something was unpublished. */
struct TailWatch {
    kmes_fields fields;
    bool reached = false;
    void check() { reached = reached || *fields.tail_pos >= *fields.write_pos; }
};

TEST(LiteralWriter, MovesTheTailPastWhatIsPublishedInABatchAsE8Says) {
    World world({});
    LiteralWriter writer(world);
    writer.emit(60_b);
    TailWatch watch{world.first().buffer.shared};
    writer.on_step = [&] { watch.check(); };
    writer.batch({60_b, 60_b, 60_b, 60_b});
    EXPECT_TRUE(watch.reached);
}

TEST(CoreWriter, NeverMovesTheTailPastWhatIsPublishedInABatch) {
    World world({});
    ASSERT_EQ(world.emit_sized(60_b), 0);
    TailWatch watch{world.first().buffer.shared};
    kmes_batch batch;
    kmes_batch_begin(&world.cpu, &batch);
    {
        ScopedHook hook([&](const kmes_order_access&) { watch.check(); });
        for (int i = 0; i < 40; i++)
            ASSERT_EQ(world.batch_emit_sized(batch, 30_b + 7_b * i % 90_b), 0);
    }
    kmes_batch_end(&world.cpu, &batch);
    EXPECT_FALSE(watch.reached);
    EXPECT_GT(world.cpu.statistics.overwritten, 30u);
}

// E13: the page is writable to consumers, and the literal writer believes it.
TEST(LiteralWriter, FollowsAConsumerThatWritesItsPositionsAsE13Says) {
    World world({});
    LiteralWriter writer(world);
    writer.emit(60_b);
    *world.first().buffer.shared.write_pos = 7_b;
    writer.emit(60_b);
    EXPECT_EQ(world.first().shared_write_pos(), 67_b) << "over the first event";
}

TEST(CoreWriter, DoesNotFollowAConsumerThatWritesItsPositions) {
    World world({});
    ASSERT_EQ(world.emit_sized(60_b), 0);
    *world.first().buffer.shared.write_pos = 7_b;
    *world.first().buffer.shared.tail_pos = 500_b;
    ASSERT_EQ(world.emit_sized(60_b), 0);
    EXPECT_EQ(world.first().shared_write_pos(), 120_b);
    Reader reader(world);
    *world.first().buffer.shared.tail_pos = 0;
    ASSERT_EQ(reader.open(), 0);
    EXPECT_EQ(reader.drain(), Sequences({1, 2}));
}

// E16: an interrupt that emits in the middle of an emission.
TEST(LiteralWriter, WritesOverTheEventThatInterruptedItAsE16Says) {
    World world({});
    LiteralWriter writer(world);
    writer.on_clock = [&] {
        writer.on_clock = nullptr;
        writer.emit(50_b);
    };
    writer.emit(40_b);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    EXPECT_EQ(reader.drain(), Sequences({1}))
        << "2 was published, and is gone without a gap after it";
    EXPECT_EQ(world.first().shared_write_pos(), 40_b) << "it moved back";
}

TEST(CoreWriter, TurnsAwayAnEventThatInterruptsItAndShowsTheGap) {
    World world({});
    world.on_clock = [&] {
        world.on_clock = nullptr;
        EXPECT_EQ(world.emit_sized(50_b), -EBUSY);
    };
    ASSERT_EQ(world.emit_sized(40_b), 0);
    ASSERT_EQ(world.emit_sized(40_b), 0);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    ASSERT_EQ(reader.next(), KMES_READ_EVENT);
    EXPECT_EQ(reader.view.sequence, 2u) << "1 was turned away, its number used";
    ASSERT_EQ(reader.next(), KMES_READ_EVENT);
    EXPECT_EQ(reader.view.sequence, 3u);
    EXPECT_EQ(world.cpu.statistics.dropped_nested, 1u);
}

// E5: the stores of the new event become visible before that of tail_pos, which a release store
// alone allows. A reader between them finds the old tail after the new bytes.
TEST(LiteralWriter, GivesATornEventWhereTheDataIsVisibleBeforeTheTailAsE5Says) {
    World world({});
    for (int i = 0; i < 4; i++) ASSERT_EQ(world.emit_sized(60_b), 0);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    int words = 0;
    ScopedHook hook([&](const kmes_order_access& access) {
        if (access.label != KMES_ORDER_READ_DATA || ++words != 8) return;
        memset(world.first().memory.data() + 40_b, 0xEE, 20_b);  // data, and no TAIL yet
        world.first().memory.mirror(world.first().memory.data() + 40_b, 20_b);
    });
    ASSERT_EQ(reader.next(), KMES_READ_EVENT);
    EXPECT_FALSE(is_self_describing(Delivered::from(reader.view)));
}

using Labels = std::vector<enum kmes_order_label>;

TEST(CoreWriter, StoresAndFencesTheTailBeforeTheFirstByteOfData) {
    World world({});
    for (int i = 0; i < 4; i++) ASSERT_EQ(world.emit_sized(60_b), 0);
    std::vector<enum kmes_order_label> labels;
    {
        ScopedHook hook([&](const kmes_order_access& access) {
            if (labels.empty() || labels.back() != access.label) labels.push_back(access.label);
        });
        ASSERT_EQ(world.emit_sized(60_b), 0);
    }
    if (labels.front() == KMES_ORDER_WALK_SIZE) labels.erase(labels.begin());
    EXPECT_EQ(labels, (std::vector<enum kmes_order_label>{
                          KMES_ORDER_TAIL, KMES_ORDER_TAIL_FENCE, KMES_ORDER_DATA,
                          KMES_ORDER_PUBLISH, KMES_ORDER_WAKE_FENCE, KMES_ORDER_NEED_WAKE}))
        << "E5, 5.1.7 steps 6 to 9, E1";
}

// E1 for consumers that promise the barrier: an emission and a batch omit the fence, and nothing
// else.
TEST(CoreWriter, LeavesOutTheFullFenceWhereTheConsumersHaveIt) {
    World world({});
    Labels labels;
    ScopedHook hook([&](const kmes_order_access& access) {
        if (labels.empty() || labels.back() != access.label) labels.push_back(access.label);
    });

    world.cpu.has_light_fence = true;
    *world.first().buffer.shared.need_wake = 1;
    ASSERT_EQ(world.emit_sized(60_b), 0);
    const Labels light = {KMES_ORDER_DATA, KMES_ORDER_PUBLISH, KMES_ORDER_WAKE_FENCE_LIGHT,
                          KMES_ORDER_NEED_WAKE, KMES_ORDER_COUNTER};
    EXPECT_EQ(labels, light);
    EXPECT_EQ(world.wakes_of(world.first()), 1u);
    labels.clear();
    kmes_batch batch;
    kmes_batch_begin(&world.cpu, &batch);
    world.batch_emit_sized(batch, 60_b);
    kmes_batch_end(&world.cpu, &batch);
    EXPECT_EQ(labels, light);
}

/* A sleeps; B comes, finds something or nothing, and leaves; then an event comes. Returns the
 * wakes for A. */
std::size_t wakes_after_a_sharer_came_by(enum kmes_sharing sharing) {
    World world({});
    Reader a(world), b(world);
    a.config.sharing = sharing;
    b.config.sharing = sharing;
    EXPECT_EQ(a.open(), 0);
    EXPECT_EQ(b.open(), 0);
    std::size_t wakes = 0;
    world.on_sleep = [&](std::uint32_t*, std::uint32_t, std::uint64_t) {
        world.on_sleep = nullptr;  // B's own sleep is interrupted
        kmes_reader_wait(&b.reader, 1);
        EXPECT_EQ(world.emit_sized(30_b), 0);
        wakes = world.wakes_of(world.first());
        return 0;
    };
    kmes_reader_wait(&a.reader, KMES_NO_TIMEOUT);
    return wakes;
}

// E12: a consumer that clears the flag erases the request of another consumer that already sleeps.
TEST(TwoReaders, LoseAWakeUpWhereEachClearsTheFlagAsE12Says) {
    EXPECT_EQ(wakes_after_a_sharer_came_by(KMES_EXCLUSIVE), 0u);
}

TEST(TwoReaders, LoseNoWakeUpInSharedMode) {
    EXPECT_EQ(wakes_after_a_sharer_came_by(KMES_SHARED), 1u);
}

// E19: a reader that remembered the generation of a dead buffer sleeps until it is nudged.
TEST(Nudge, FreesAReaderThatRemembersTheGenerationOfADeadBuffer) {
    World world({});
    TestBuffer& dead = world.first();
    ASSERT_EQ(world.swap(256_b), 0);
    world.on_attach = [&](kmes_mapping* mapping) {
        world.describe_current(mapping);
        mapping->base = dead.memory.base();
        mapping->inode = dead.inode;
        return 0;
    };
    world.on_identify = world.on_attach; /* as if the consumer did not check (E19) */
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    world.on_attach = nullptr;
    world.on_identify = nullptr;
    ASSERT_EQ(world.emit_sized(30_b), 0);
    EXPECT_EQ(reader.next(), KMES_READ_EMPTY);
    int sleeps = 0;
    world.on_sleep = [&](std::uint32_t*, std::uint32_t, std::uint64_t) {
        sleeps++;
        const std::size_t before = world.wakes_of(dead);
        EXPECT_EQ(kmes_buffer_nudge(&world.cpu, &dead.buffer), 0);
        EXPECT_EQ(world.wakes_of(dead), before + 1);
        return 0;
    };
    EXPECT_EQ(kmes_reader_wait(&reader.reader, KMES_NO_TIMEOUT), 1);
    EXPECT_EQ(sleeps, 1) << "it was asleep on a dead buffer";
    EXPECT_EQ(reader.drain(), Sequences({1}));
}

}  // namespace
}  // namespace kmes::tests
