// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * kmes_emit_batch with descriptors that lie, fault and change. Tests each promise of kmes/call.h
 * with the bytes of the ring and the list of fetches.
 */
#include "kmes/call.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kmes/tests/bytes.h"
#include "kmes/tests/call_fixture.h"
#include "kmes/tests/caller_memory.h"
#include "kmes/tests/world.h"

namespace kmes::tests {
namespace {

// event-model.md: 1 to 256 entries; any other number is EINVAL.
TEST_F(CallTest, ABatchOfNoEntriesOrOfMoreThan256IsInvalid) {
    int clocks = 0;

    world_->on_clock = [&] { clocks++; };
    for (std::uint32_t i = 0; i < 257; i++) memory_.put_entry(entry(i), kType, 1, kPayload, 0);
    memory_.put(kType, "t");
    for (const std::uint32_t count : {0u, 257u, 0x80000001u, ~0u}) {
        EXPECT_EQ(batch(count), -EINVAL) << count;
        EXPECT_EQ(emitted_, 0u) << count;
    }
    EXPECT_EQ(memory_.fetches, Fetches{});
    EXPECT_EQ(clocks, 0);
    expect_nothing_happened();
    EXPECT_EQ(batch(256), 0);
    EXPECT_EQ(emitted_, 256u);
    EXPECT_EQ(world_->cpu.sequence, 256u);
    EXPECT_EQ(world_->first().shared_write_pos(), 256u * 30);
    EXPECT_EQ(memory_.fetches.size(), 512u);
}

// 5.1.7, last rule: "A single release store of write_pos and a single need_wake check cover the
// entire batch." event-model.md: all events of a batch have the same timestamp.
TEST_F(CallTest, ABatchHasOneTimestampAndIsPublishedAndWokenOnce) {
    int clocks = 0;
    int publishes = 0;
    int loads = 0;

    world_->now_ns = 40;
    world_->on_clock = [&] {
        clocks++;
        world_->now_ns++;
    };
    for (std::uint32_t i = 0; i < 4; i++) put_sound_entry(i);
    *world_->first().buffer.shared.need_wake = 1;
    {
        ScopedHook hook([&](const kmes_order_access& access) {
            publishes += access.label == KMES_ORDER_PUBLISH;
            loads += access.label == KMES_ORDER_NEED_WAKE;
        });
        ASSERT_EQ(batch(4), 0);
    }
    EXPECT_EQ(emitted_, 4u);
    EXPECT_EQ(clocks, 1);
    EXPECT_EQ(publishes, 1);
    EXPECT_EQ(loads, 1);
    EXPECT_EQ(world_->wakes_of(world_->first()), 1u);
    EXPECT_EQ(*world_->first().buffer.shared.futex_counter, 1u);
    EXPECT_EQ(world_->first().shared_write_pos(), 128u);
    EXPECT_EQ(world_->first().survivors(), sound_events(4, 41));
    EXPECT_EQ(memory_.fetches, (Fetches{{entry(0), 32},
                                        {kType, 1},
                                        {kPayload, 2},
                                        {entry(1), 32},
                                        {kType + 16, 1},
                                        {kPayload + 256, 2},
                                        {entry(2), 32},
                                        {kType + 32, 1},
                                        {kPayload + 512, 2},
                                        {entry(3), 32},
                                        {kType + 48, 1},
                                        {kPayload + 768, 2}}));
}

TEST_F(CallTest, TheEventsOfABatchHaveTheOriginClassOfTheCall) {
    put_sound_entry(0);
    call_.origin_class = KMES_ORIGIN_KACS;
    ASSERT_EQ(batch(1), 0);
    EXPECT_EQ(world_->first().survivors()[26], 2u);
}

// event-model.md: it stops at the first bad entry, emits the entries before that one, and fails
// with its error.
TEST_F(CallTest, ABatchStopsAtItsFirstBadEntryAndPublishesThoseBefore) {
    struct {
        std::uint64_t type;
        std::uint16_t type_len;
        std::uint64_t payload;
        std::uint32_t payload_len;
        int error;
        std::size_t fetches; /* beyond its descriptor */
    } const bad[] = {
        {kType, 0, kPayload, 2, -EINVAL, 0},
        {kType, 0, kPayload, ~0u, -EINVAL, 0},
        {kNowhere, 1, kNowhere, ~0u, -ENOSPC, 0},
        {kNowhere, 1, kNowhere, 99, -ENOSPC, 0}, /* 129 bytes in 256 */
        {kNowhere, 1, kNowhere, 98, -EFAULT, 1},
        {kType + 8, 1, kNowhere, 98, -EINVAL, 1}, /* not UTF-8 */
        {kType, 1, kNowhere, 98, -EFAULT, 2},
    };

    for (std::uint32_t k = 0; k < 4; k++) {
        for (const auto& entry_k : bad) {
            memory_ = CallerMemory();
            start({});
            world_->now_ns = 7;
            for (std::uint32_t i = 0; i < 4; i++) put_sound_entry(i);
            memory_.put(kType + 8, "\x80");
            memory_.put_entry(entry(k), entry_k.type, entry_k.type_len, entry_k.payload,
                              entry_k.payload_len);
            EXPECT_EQ(batch(4), entry_k.error) << k;
            EXPECT_EQ(emitted_, k);
            EXPECT_EQ(memory_.fetches.size(), 3 * k + 1 + entry_k.fetches) << k;
            EXPECT_EQ(world_->first().shared_write_pos(), 32u * k);
            EXPECT_EQ(world_->first().survivors(), sound_events(k, 7));
            EXPECT_EQ(world_->cpu.sequence, k);
            EXPECT_EQ(world_->cpu.statistics.dropped, 0u);
            EXPECT_EQ(world_->cpu.statistics.events, k);
            if (k == 0) expect_nothing_happened();
        }
    }
}

TEST_F(CallTest, AFaultAtAnyFetchOfABatchLeavesTheEntriesBeforeItPublished) {
    constexpr std::uint32_t kCount = 4;

    for (std::uint32_t fault = 0; fault <= 3 * kCount; fault++) {
        memory_ = CallerMemory();
        start({});
        world_->now_ns = 9;
        for (std::uint32_t i = 0; i < kCount; i++) put_sound_entry(i);
        memory_.fail_at = fault;
        EXPECT_EQ(batch(kCount), fault < 3 * kCount ? -EFAULT : 0);
        EXPECT_EQ(emitted_, fault / 3);
        EXPECT_EQ(memory_.fetches.size(), std::min(fault + 1, 3 * kCount));
        EXPECT_EQ(world_->first().shared_write_pos(), 32u * (fault / 3));
        EXPECT_EQ(world_->first().survivors(), sound_events(fault / 3, 9));
        EXPECT_EQ(world_->cpu.sequence, fault / 3);
    }
}

TEST_F(CallTest, ADescriptorCountsAsItWasWhenItWasFetched) {
    put_sound_entry(0);
    put_sound_entry(1);
    memory_.after_fetch = [&](const CallerMemory::Fetch& fetch) {
        if (fetch.bytes == 32) memory_.put_entry(fetch.address, kNowhere, 65535, kNowhere, ~0u);
    };
    world_->now_ns = 3;
    EXPECT_EQ(batch(2), 0);
    EXPECT_EQ(emitted_, 2u);
    EXPECT_EQ(world_->first().survivors(), sound_events(2, 3));
    EXPECT_EQ(memory_.fetches.size(), 6u);
}

TEST_F(CallTest, AnEntryThatIsThereInPartOnlyIsAFault) {
    put_sound_entry(0);
    put_sound_entry(1);
    memory_.take_away(entry(1) + 31);
    EXPECT_EQ(batch(2), -EFAULT);
    EXPECT_EQ(emitted_, 1u);
}

TEST_F(CallTest, EntriesThatRunOverTheEndOfTheAddressSpaceAreAFault) {
    put_sound_entry(0);
    memory_.put_entry(0ull - 32, kType, 1, kPayload, 2);
    EXPECT_EQ(batch(2, 0ull - 32), -EFAULT);
    EXPECT_EQ(emitted_, 1u);
    EXPECT_EQ(memory_.fetches.back(), (CallerMemory::Fetch{0, 32}));
    EXPECT_EQ(batch(1, 0), -EFAULT);
    EXPECT_EQ(emitted_, 0u);
}

// 4 events of 128 bytes in 256: E8 publishes on the way, the end wakes.
TEST_F(CallTest, ABatchLargerThanTheBufferKeepsItsNewestEvents) {
    for (std::uint32_t i = 0; i < 4; i++) put_sound_entry(i, 98);
    *world_->first().buffer.shared.need_wake = 1;
    EXPECT_EQ(batch(4), 0);
    EXPECT_EQ(emitted_, 4u);
    EXPECT_EQ(world_->first().shared_write_pos(), 512u);
    EXPECT_EQ(world_->first().shared_tail_pos(), 256u);
    EXPECT_EQ(world_->first().survivors()[30], '2');
    EXPECT_EQ(world_->first().survivors()[128 + 30], '3');
    EXPECT_EQ(world_->wakes_of(world_->first()), 1u);
    EXPECT_EQ(world_->cpu.statistics.overwritten, 2u);
}

// E16: an interrupt during a batch appends its event after the written part of the batch, and
// publishes everything.
TEST_F(CallTest, WhoeverEmitsBetweenTwoEntriesPublishesThoseBefore) {
    put_sound_entry(0);
    put_sound_entry(1);
    memory_.after_fetch = [&](const CallerMemory::Fetch& fetch) {
        if (fetch.address != entry(1)) return;
        EXPECT_EQ(world_->first().shared_write_pos(), 0u);
        EXPECT_EQ(world_->emit("t", "xx"), 0);
        EXPECT_EQ(world_->first().shared_write_pos(), 64u);
    };
    EXPECT_EQ(batch(2), 0);
    EXPECT_EQ(world_->first().shared_write_pos(), 96u);
    EXPECT_EQ(world_->cpu.sequence, 3u);
    EXPECT_EQ(world_->first().survivors()[32 + 30], 'x');
    EXPECT_EQ(world_->first().survivors()[64 + 30], '1');
}

TEST_F(CallTest, ABatchGoesOnInTheNewBufferAfterAResize) {
    put_sound_entry(0);
    put_sound_entry(1, 98);
    put_sound_entry(2);
    memory_.after_fetch = [&](const CallerMemory::Fetch& fetch) {
        if (fetch.address == entry(1)) {
            EXPECT_EQ(world_->swap(512), 0);
        }
        if (fetch.address == entry(2)) {
            EXPECT_EQ(world_->swap(256), 0);
        }
    };
    EXPECT_EQ(batch(3), 0);
    EXPECT_EQ(emitted_, 3u);
    EXPECT_EQ(world_->current().shared_write_pos(), 32u + 128 + 32);
    EXPECT_EQ(world_->first().shared_write_pos(), 32u) << "published before it was retired";
    EXPECT_EQ(world_->cpu.sequence, 3u);
}

TEST_F(CallTest, AnEntryThatAResizeMadeTooLargeUsesNoNumber) {
    start({.capacity_bytes = 512});
    put_sound_entry(0);
    put_sound_entry(1, 99);
    memory_.after_fetch = [&](const CallerMemory::Fetch& fetch) {
        if (fetch.address == kPayload + 256) {
            EXPECT_EQ(world_->swap(256), 0);
        }
    };
    EXPECT_EQ(batch(2), -ENOSPC);
    EXPECT_EQ(emitted_, 1u);
    EXPECT_EQ(world_->cpu.sequence, 1u);
    EXPECT_EQ(world_->cpu.statistics.dropped, 0u);
    EXPECT_EQ(world_->current().shared_write_pos(), 32u);
}

// Between two entries the producer ends (E25), and publishes the pending events.
TEST_F(CallTest, ABatchWhoseProducerEndsIsBusyFromThereOn) {
    Section section;

    section.watch(world_.get());
    for (std::uint32_t i = 0; i < 3; i++) put_sound_entry(i);
    memory_.after_fetch = [&](const CallerMemory::Fetch& fetch) {
        if (fetch.address != entry(2)) return;
        EXPECT_EQ(kmes_cpu_retire(&world_->cpu), 0);
        section.is_closed = true;
    };
    EXPECT_EQ(batch(3), -EBUSY);
    EXPECT_EQ(emitted_, 2u);
    EXPECT_EQ(memory_.fetches.size(), 7u);
    EXPECT_EQ(world_->first().shared_write_pos(), 64u);
    EXPECT_EQ(section.depth, 0);
}

}  // namespace
}  // namespace kmes::tests
