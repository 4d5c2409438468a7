// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The events that survive (5.1.7 step 6), the cost of finding them (E23), and the effect of an
 * impossible size in the ring (E13). Compares the writer and the swap with a model of one line a
 * rule.
 */
#include <gtest/gtest.h>

#include <deque>

#include "kmes/tests/test_reader.h"

namespace kmes::tests {
namespace {

/* 5.1.7 step 6, literally: events leave at the tail until there is room. */
struct NaiveRing {
    std::uint64_t capacity;
    std::deque<std::uint64_t> sizes;
    std::uint64_t tail = 0;
    std::uint64_t write = 0;
    std::uint64_t walked = 0;

    void write_event(std::uint64_t bytes) {
        walked = 0;
        while (write + bytes - tail > capacity) {
            tail += sizes.front();
            sizes.pop_front();
            walked++;
        }
        sizes.push_back(bytes);
        write += bytes;
    }
};

// E23: the surviving events are exactly those of the specification.
TEST(WhatSurvives, IsWhatTheWalkOfTheTextLeaves) {
    for (const std::uint64_t capacity : {256_b, 512_b, 1024_b, 4096_b, 65536_b}) {
        World world({.capacity_bytes = capacity});
        NaiveRing naive{.capacity = capacity, .sizes = {}};
        std::uint64_t random = capacity;
        for (int i = 0; i < 3000; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            const std::uint64_t span = (random >> 20) % 4 ? 40_b : capacity / 2 - 30_b + 1;
            const std::uint64_t bytes = 30_b + (random >> 33) % span;
            ASSERT_EQ(world.emit_sized(bytes), 0);
            naive.write_event(bytes);
            ASSERT_EQ(world.first().shared_tail_pos(), naive.tail) << capacity << " " << i;
            ASSERT_EQ(world.first().shared_write_pos(), naive.write);
        }
        EXPECT_EQ(world.cpu.statistics.overwritten + naive.sizes.size(), 3000u);
        EXPECT_EQ(world.cpu.statistics.corrupt, 0u);
    }
}

/* Counts the sizes that are read from the ring. A size that straddles two words counts twice. */
struct WalkCounter {
    std::uint64_t sizes = 0;
    const std::uint8_t* last = nullptr;

    void see(const kmes_order_access& access) {
        if (access.label != KMES_ORDER_WALK_SIZE) return;
        const auto* address = static_cast<const std::uint8_t*>(access.address);
        const bool is_second_part =
            last && address > last && access.bytes < 4 && address - last < 4;
        if (!is_second_part) sizes++;
        last = address;
    }
};

// E23: at most 137 sizes are read after an index entry. One event overwrites thousands of tiny
// ones.
constexpr std::uint64_t kTiny = KMES_EVENT_MIN_BYTES;
constexpr std::uint64_t kMostSizes = 4096 / kTiny + 1;  // 137 in form A
constexpr std::uint64_t kOneLarge = 128 << 10;

TEST(Walk, ReadsAtMost137SizesHoweverManyTinyEventsAreOverwritten) {
    std::uint64_t most = 0;
    for (std::uint64_t start = 0; start < 30; start++) {
        World world({.capacity_bytes = 256 << 10, .start_pos = start * kMostSizes});
        for (int i = 0; i < 9000; i++) ASSERT_EQ(world.emit_sized(kTiny), 0);
        const std::uint64_t before = world.cpu.statistics.overwritten;
        WalkCounter walk;
        {
            ScopedHook hook([&](const kmes_order_access& access) { walk.see(access); });
            ASSERT_EQ(world.emit_sized(kOneLarge), 0);
        }
        EXPECT_GE(world.cpu.statistics.overwritten - before, kOneLarge / kTiny - 1);
        EXPECT_LE(walk.sizes, kMostSizes) << start;
        most = std::max(most, walk.sizes);
    }
    EXPECT_GT(most, 0u);
}

TEST(Walk, OfTheTextReadsThousandsOfSizesForTheSameEvent) {
    NaiveRing naive{.capacity = 256 << 10, .sizes = {}};
    for (int i = 0; i < 9000; i++) naive.write_event(kTiny);
    naive.write_event(kOneLarge);
    EXPECT_GT(naive.walked, kMostSizes) << "E23: the walk has no bound";
}

/* Writes an impossible size at `pos`, into the producer's own mapping. */
void forge_size(World& world, std::uint64_t pos, std::uint32_t size) {
    settle_mirror();
    RingMemory& memory = world.first().memory;
    std::uint8_t* at = memory.data() + (pos & (memory.capacity_bytes() - 1));
    memcpy(at, &size, sizeof(size));
    if (memory.is_mirrored()) memory.mirror(at, sizeof(size));
}

/* Each block of the index (64 of 1024 bytes) has two events of 32 bytes, so a size is read. */
void forge_sizes(World& world, std::uint64_t from, std::uint64_t to, std::uint32_t size) {
    for (std::uint64_t pos = from; pos < to; pos += 32_b) forge_size(world, pos, size);
}

// E13: a size out of bounds is counted, publishes pending events, and empties the buffer.
TEST(CorruptSize, EmptiesTheBufferAndIsCounted) {
    for (const std::uint32_t size :
         {0u, 1u, KMES_EVENT_MIN_BYTES - 1, std::uint32_t{1024_b + 1}, 0x80000000u, 0xFFFFFFFFu}) {
        for (const std::uint64_t bytes : {50_b, 120_b, 300_b}) {
            World world({.capacity_bytes = 1024_b, .start_pos = 3_b});
            for (int i = 0; i < 32; i++) ASSERT_EQ(world.emit_sized(32_b), 0);
            forge_sizes(world, 3_b, 3_b + 1024_b, size);
            ASSERT_EQ(world.emit_sized(bytes), 0);
            EXPECT_EQ(world.cpu.statistics.corrupt, 1u) << size << " " << bytes;
            EXPECT_EQ(world.first().shared_tail_pos(), 3_b + 1024_b) << "tail_pos = write_pos";
            EXPECT_EQ(world.first().shared_write_pos(), 3_b + 1024_b + bytes);
            EXPECT_EQ(world.cpu.statistics.overwritten, 32u);
            Reader reader(world);
            ASSERT_EQ(reader.open(), 0);
            EXPECT_EQ(reader.drain(), Sequences({33}));
        }
    }
}

TEST(CorruptSize, InABatchPublishesWhatIsPendingFirst) {
    World world({.capacity_bytes = 1024_b});
    for (int i = 0; i < 16; i++) ASSERT_EQ(world.emit_sized(32_b), 0);
    *world.first().buffer.shared.need_wake = 1;
    kmes_batch batch;
    kmes_batch_begin(&world.cpu, &batch);
    for (int i = 0; i < 16; i++) ASSERT_EQ(world.batch_emit_sized(batch, 32_b), 0);
    world.wakes.clear();
    forge_sizes(world, 0, 1024_b, 0);
    ASSERT_EQ(world.batch_emit_sized(batch, 50_b), 0);
    EXPECT_EQ(world.first().shared_write_pos(), 1024_b);
    EXPECT_EQ(world.first().shared_tail_pos(), 1024_b);
    EXPECT_EQ(world.cpu.statistics.overwritten, 32u);
    kmes_batch_end(&world.cpu, &batch);
    EXPECT_EQ(world.first().shared_write_pos(), 1074_b);
    EXPECT_EQ(world.wakes_of(world.first()), 1u);
    EXPECT_EQ(world.cpu.statistics.corrupt, 1u);
}

// The boundary index does not trust the ring: the sizes after an index entry are not walked.
TEST(CorruptSize, IsNotEvenReadWhereTheIndexLeadsPastIt) {
    World world({.capacity_bytes = 65536_b});
    for (int i = 0; i < 2100; i++) ASSERT_EQ(world.emit_sized(32_b), 0);
    const std::uint64_t tail = world.first().shared_tail_pos();
    forge_size(world, tail, 1);
    ASSERT_EQ(world.emit_sized(32768_b), 0);
    EXPECT_EQ(world.cpu.statistics.corrupt, 0u);
    EXPECT_EQ(world.cpu.statistics.overwritten + 32768 / 32 + 1, 2101u);
}

TEST(CorruptSize, FoundByASwapEmptiesTheBufferAndTheSwapGoesOn) {
    for (const std::uint64_t capacity : {256_b, 512_b, 2048_b}) {
        World world({.capacity_bytes = 1024_b});
        for (int i = 0; i < 30; i++) ASSERT_EQ(world.emit_sized(32_b), 0);
        for (std::uint64_t pos = 0; pos < 960_b; pos += 32_b) forge_size(world, pos, 3);
        ASSERT_EQ(world.swap(capacity), 0);
        EXPECT_EQ(world.cpu.statistics.corrupt, 1u) << capacity;
        EXPECT_EQ(world.current().shared_tail_pos(), world.current().shared_write_pos());
        ASSERT_EQ(world.emit_sized(100_b), 0);
        Reader reader(world);
        ASSERT_EQ(reader.open(), 0);
        EXPECT_EQ(reader.drain(), Sequences({31}));
    }
}

// The same if the walk to the first survivor (E10) meets it, before anything is copied.
TEST(CorruptSize, OnTheWayToTheFirstSurvivorEmptiesTheBufferToo) {
    World world({.capacity_bytes = 1024_b, .start_pos = 25_b});
    for (int i = 0; i < 30; i++) ASSERT_EQ(world.emit_sized(30_b), 0);
    /* 925 - 512 = 413: after the boundary at 385, to which the index leads. */
    forge_size(world, 385_b, KMES_EVENT_MIN_BYTES - 1);
    ASSERT_EQ(world.swap(512_b), 0);
    EXPECT_EQ(world.cpu.statistics.corrupt, 1u);
    EXPECT_EQ(world.first().shared_tail_pos(), 925_b);
    EXPECT_EQ(world.current().shared_tail_pos(), 925_b);
    EXPECT_EQ(world.current().shared_write_pos(), 925_b);
    ASSERT_EQ(world.emit_sized(100_b), 0);
    EXPECT_EQ(world.cpu.sequence, 31u);
}

// Events emitted before the end of the swap are counted and indexed from there.
TEST(CorruptSize, OnTheWayToTheFirstSurvivorLeavesTheCountsRight) {
    World world({.capacity_bytes = 1024_b, .start_pos = 25_b});
    for (int i = 0; i < 30; i++) ASSERT_EQ(world.emit_sized(30_b), 0);
    forge_size(world, 385_b, KMES_EVENT_MIN_BYTES - 1);
    TestBuffer& fresh = world.make_buffer(512_b);
    kmes_swap swap;
    ASSERT_EQ(kmes_swap_begin(&swap, &world.cpu, &fresh.buffer, KMES_SWAP_KEEP, 0), 0);
    for (int i = 0; i < 10; i++) ASSERT_EQ(world.emit_sized(30_b), 0);
    ASSERT_EQ(kmes_swap_finish(&swap), 0);
    EXPECT_EQ(world.cpu.statistics.left_behind, 0u);
    EXPECT_EQ(world.cpu.statistics.overwritten, 30u) << "the buffer was emptied";
    for (int i = 0; i < 100; i++) ASSERT_EQ(world.emit_sized(30_b), 0);
    EXPECT_EQ(world.cpu.statistics.overwritten, 140u - 512 / 30);
    EXPECT_EQ(fresh.shared_write_pos() - fresh.shared_tail_pos(), 512u / 30 * 30_b);
}

// E18: emission continues between the pieces of a swap, even so much that it laps the copied
// events.
TEST(SwapUnderEmission, LosesNothingThatSurvivesAndKeepsTheIndexRight) {
    for (const std::uint64_t between : {0u, 1u, 50u, 700u, 5000u}) {
        for (const std::uint64_t capacity : {65536u, 262144u, 1048576u}) {
            World world({.capacity_bytes = 262144, .start_pos = 99999});
            NaiveRing naive{.capacity = 262144, .sizes = {}, .tail = 99999, .write = 99999};
            auto emit = [&](std::uint64_t i) {
                const std::uint64_t bytes = kTiny + i * 37 % 200;
                ASSERT_EQ(world.emit_sized(bytes), 0);
                naive.write_event(bytes);
            };
            for (std::uint64_t i = 0; i < 4000; i++) emit(i);
            TestBuffer& fresh = world.make_buffer(capacity);
            kmes_swap swap;
            ASSERT_EQ(kmes_swap_begin(&swap, &world.cpu, &fresh.buffer, KMES_SWAP_KEEP, 0), 0);
            std::uint64_t rounds = 0;
            while (kmes_swap_copy(&swap) && ++rounds < kmes_swap_rounds(&swap))
                for (std::uint64_t i = 0; i < between; i++) emit(i);
            for (std::uint64_t i = 0; i < between; i++) emit(i);
            const std::vector<std::uint8_t> old_bytes = world.first().survivors();
            ASSERT_EQ(kmes_swap_finish(&swap), 0);
            while (naive.write - naive.tail > capacity) {  // E10
                naive.tail += naive.sizes.front();
                naive.sizes.pop_front();
            }
            EXPECT_EQ(fresh.shared_tail_pos(), naive.tail);
            EXPECT_EQ(fresh.shared_write_pos(), naive.write);
            const std::vector<std::uint8_t> kept(
                old_bytes.end() - static_cast<std::ptrdiff_t>(naive.write - naive.tail),
                old_bytes.end());
            ASSERT_EQ(fresh.survivors(), kept) << between << " " << capacity;
            naive.capacity = capacity;
            for (std::uint64_t i = 0; i < 20000; i++) {
                emit(i);
                ASSERT_EQ(fresh.shared_tail_pos(), naive.tail) << between << " " << capacity;
            }
            EXPECT_EQ(world.cpu.statistics.corrupt, 0u);
        }
    }
}

// The last piece ends where the events end, even with one byte. The new buffer's index has all of
// them, although they are more than one piece takes.
TEST(Swap, CopiesTheLastByteAndIndexesTheLastEvent) {
    World world({.capacity_bytes = 262144});
    ASSERT_EQ(world.emit_sized(KMES_SWAP_PIECE_BYTES + 1), 0);
    const std::vector<std::uint8_t> bytes = world.current().survivors();
    TestBuffer& fresh = world.make_buffer(262144);
    kmes_swap swap;
    ASSERT_EQ(kmes_swap_begin(&swap, &world.cpu, &fresh.buffer, KMES_SWAP_KEEP, 0), 0);
    std::uint64_t copied = 0;
    {
        ScopedHook hook([&](const kmes_order_access& access) {
            if (access.label == KMES_ORDER_SWAP_DATA) copied += access.bytes;
        });
        EXPECT_TRUE(kmes_swap_copy(&swap));
    }
    EXPECT_EQ(copied, KMES_SWAP_PIECE_BYTES);
    ASSERT_EQ(kmes_swap_finish(&swap), 0);
    EXPECT_EQ(world.current().survivors(), bytes);

    /* In form A the pieces of bytes are finished before the pieces of the index. */
    const std::uint64_t capacity = 1 << 20;
    const std::uint64_t count = capacity / kTiny;
    World tiny({.capacity_bytes = capacity});
    for (std::uint64_t i = 0; i < count; i++) ASSERT_EQ(tiny.emit_sized(kTiny), 0);
    ASSERT_EQ(tiny.swap(capacity), 0);
    for (std::uint64_t i = count + 1; i <= 2 * count; i++) {
        ASSERT_EQ(tiny.emit_sized(kTiny), 0);
        ASSERT_EQ(tiny.current().shared_tail_pos(), (i - count) * kTiny);
    }
    EXPECT_EQ(tiny.cpu.statistics.corrupt, 0u);
}

// E18: the copy takes a bounded number of rounds although emission never rests. Some rounds come
// before the last one.
void swap_against_the_restless(std::uint64_t capacity) {
    World world({.capacity_bytes = capacity});
    for (int i = 0; i < 10; i++) ASSERT_EQ(world.emit_sized(capacity / 2), 0);
    bool emitting = false;
    ScopedHook hook([&](const kmes_order_access&) {});
    kmes_platform platform = world.platform;
    struct Restless {
        World* world;
        bool* emitting;
        std::uint64_t event_bytes;
        int left;
    } restless{&world, &emitting, capacity / 2, 1000};
    platform.context = &restless;
    platform.clock_ns = [](void*) -> __u64 { return 1; };
    platform.queue_wake = [](void*, kmes_buffer*) {};
    platform.exit = [](void* context) {
        auto* self = static_cast<Restless*>(context);
        if (*self->emitting || self->left == 0) return;
        *self->emitting = true;
        self->left--;
        self->world->emit_sized(self->event_bytes);
        *self->emitting = false;
    };
    world.cpu.platform = &platform;
    ASSERT_EQ(world.swap(capacity), 0);
    EXPECT_GT(restless.left, 1000 - 100) << "it ended while the emitter was still busy";
    EXPECT_LT(restless.left, 1000 - 20);
    EXPECT_EQ(world.cpu.statistics.swaps, 1u);
}

TEST(SwapUnderEmission, EndsAgainstAnEmitterThatNeverRests) {
    for (const std::uint64_t capacity : {131072u, 262144u}) swap_against_the_restless(capacity);
}

// The number of bytes copied in one critical section is bounded (E18).
TEST(SwapUnderEmission, CopiesABoundedNumberOfBytesInOnePiece) {
    World world({.capacity_bytes = 1_b << 20});
    for (int i = 0; i < 30000; i++) ASSERT_EQ(world.emit_sized(34_b), 0);
    TestBuffer& fresh = world.make_buffer(1_b << 20);
    kmes_swap swap;
    ASSERT_EQ(kmes_swap_begin(&swap, &world.cpu, &fresh.buffer, KMES_SWAP_KEEP, 0), 0);
    bool more = true;
    int pieces = 0;
    while (more) {
        std::uint64_t bytes = 0;
        WalkCounter walk;
        {
            ScopedHook hook([&](const kmes_order_access& access) {
                walk.see(access);
                if (access.label == KMES_ORDER_SWAP_DATA) bytes += access.bytes;
            });
            more = kmes_swap_copy(&swap);
        }
        EXPECT_LE(bytes, KMES_SWAP_PIECE_BYTES);
        /* No walk to the first survivor is needed here. */
        EXPECT_LE(walk.sizes, KMES_SWAP_PIECE_EVENTS);
        if (pieces == 0) {
            EXPECT_EQ(walk.sizes, KMES_SWAP_PIECE_EVENTS);
        }
        pieces++;
    }
    EXPECT_GE(pieces, 15);
    EXPECT_LE(pieces, static_cast<int>(kmes_swap_rounds(&swap)));
    ASSERT_EQ(kmes_swap_finish(&swap), 0);
}

}  // namespace
}  // namespace kmes::tests
