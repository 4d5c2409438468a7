// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The writer's calls, one test for each promise of ring.h: emit, emit_call, reserve, batch, nested
 * emission, wake decision (5.1.7 with E8, E13, E16).
 */
#include <gtest/gtest.h>

#include <cstring>

#include "kmes/tests/bytes.h"
#include "kmes/tests/world.h"

namespace kmes::tests {
namespace {

kmes_event_input input_of(const char* type, std::uint16_t type_len, std::uint32_t payload_len) {
    static const std::vector<char> payload(1 << 20, 'p');
    kmes_event_input input{};
    input.type = type;
    input.type_len = type_len;
    input.payload = payload.data();
    input.payload_len = payload_len;
    return input;
}

// Old content of the memory must not count as a number, a pending wake or a running emission.
TEST(Cpu, BeginsTheSameInMemoryThatHeldAnything) {
    World world({});
    kmes_cpu& cpu = world.cpu;
    memset(&cpu, 0xA5, sizeof(cpu));
    kmes_cpu_init(&cpu, 7, &world.first().buffer, &world.platform, 41);
    EXPECT_EQ(cpu.inside, 0u);
    EXPECT_EQ(cpu.nested_missed, 0u);
    EXPECT_FALSE(cpu.wake_owed);
    const kmes_statistics none{};
    EXPECT_EQ(memcmp(&cpu.statistics, &none, sizeof(none)), 0);
    ASSERT_EQ(world.emit_sized(30), 0);
    EXPECT_EQ(cpu.sequence, 42u);
    EXPECT_EQ(cpu.statistics.dropped_nested, 0u);
}

// 5.1.7 step 5: "exceeds 50 %": half is not over half.
TEST(Emit, TakesAnEventOfExactlyHalfTheCapacity) {
    World world({});
    EXPECT_EQ(world.emit_sized(128), 0);
    EXPECT_EQ(world.emit_sized(129), -ENOSPC);
    EXPECT_EQ(world.cpu.sequence, 2u);
    EXPECT_EQ(world.cpu.statistics.dropped, 1u);
    EXPECT_EQ(world.cpu.statistics.events, 1u);
    EXPECT_EQ(world.cpu.statistics.bytes, 128u);
}

TEST(Emit, RefusesAnEventWithoutATypeAndDoesNothing) {
    World world({});
    const kmes_event_input input = input_of("", 0, 4);
    EXPECT_EQ(kmes_cpu_emit(&world.cpu, &input), -EINVAL);
    EXPECT_EQ(kmes_cpu_emit_call(&world.cpu, &input), -EINVAL);
    kmes_reservation reservation;
    EXPECT_EQ(kmes_reserve(&world.cpu, &input, &reservation), -EINVAL);
    EXPECT_EQ(world.cpu.sequence, 0u);
    EXPECT_EQ(world.emit_sized(30), 0) << "the critical section was left";
}

TEST(Emit, DropsSizesThatDoNotFitInto32Bits) {
    World world({});
    kmes_event_input input = input_of("t", 1, 0xFFFFFFFF);
    EXPECT_EQ(kmes_cpu_emit(&world.cpu, &input), -ENOSPC);
    input.payload_len = 2;
    input.header_extra_len = 0xFFFFFFFF;  // 29 + 1 + 2 + 2^32 - 1 is 31 modulo 2^32
    EXPECT_EQ(kmes_cpu_emit(&world.cpu, &input), -ENOSPC);
    EXPECT_EQ(world.first().shared_write_pos(), 0u);
}

// event-model.md, kmes_emit: ENOSPC, "nothing is written, no sequence number is used".
TEST(EmitCall, UsesNoNumberForAnEventThatIsTooLarge) {
    World world({});
    const kmes_event_input large = input_of("t", 1, 99 + 1);
    const kmes_event_input small = input_of("t", 1, 1);
    EXPECT_EQ(kmes_cpu_emit_call(&world.cpu, &large), -ENOSPC);
    EXPECT_EQ(world.cpu.statistics.dropped, 0u);
    EXPECT_EQ(kmes_cpu_emit_call(&world.cpu, &small), 0);
    EXPECT_EQ(world.cpu.sequence, 1u);
}

TEST(Reserve, ShowsTheEventOnlyWhenItIsCommitted) {
    World world({});
    world.now_ns = 9;
    const kmes_event_input input = input_of("ty", 2, 5);
    kmes_reservation reservation;
    ASSERT_EQ(kmes_reserve(&world.cpu, &input, &reservation), 0);
    EXPECT_EQ(reservation.payload_len, 5u);
    EXPECT_EQ(world.first().shared_write_pos(), 0u);
    kmes_reservation_fill(&world.cpu, &reservation, 3, "cdXX",
                          4);  // what lies beyond is not copied
    kmes_reservation_fill(&world.cpu, &reservation, 0, "zab", 3);
    kmes_reservation_fill(&world.cpu, &reservation, 5, "Y", 1);
    kmes_commit(&world.cpu, &reservation);
    const Bytes expected = {
        0x24, 0, 0, 0,                  // event_size 36
        0x1F, 0, 0, 0,                  // header_size 31
        0x09, 0, 0, 0, 0, 0,   0,   0,  // timestamp
        0x01, 0, 0, 0, 0, 0,   0,   0,  // sequence
        0,    0, 0, 2, 0, 't', 'y', 'z', 'a', 'b', 'c', 'd',
    };
    EXPECT_EQ(world.first().shared_write_pos(), 36u);
    EXPECT_EQ(world.first().survivors(), expected);
    EXPECT_EQ(world.first().memory.data_bytes(36, 8), filled(8, 0)) << "nothing beyond the event";
}

TEST(Reserve, GivesOneContiguousPayloadOverTheEndOfTheData) {
    World world({.capacity_bytes = 4096, .start_pos = 4096 - 40});
    const kmes_event_input input = input_of("t", 1, 20);
    kmes_reservation reservation;
    ASSERT_EQ(kmes_reserve(&world.cpu, &input, &reservation), 0);
    for (int i = 0; i < 20; i++) reservation.payload[i] = static_cast<std::uint8_t>(i + 1);
    kmes_commit(&world.cpu, &reservation);
    const Bytes wrapped = {11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 0};
    EXPECT_EQ(world.first().memory.data_bytes(0, 11), wrapped);
}

TEST(Reserve, AbandonedLeavesNoEventAndNoNumberButWhatItOverwroteIsGone) {
    World world({});
    ASSERT_EQ(world.emit_sized(128), 0);
    ASSERT_EQ(world.emit_sized(128), 0);
    const kmes_event_input input = input_of("t", 1, 10);
    kmes_reservation reservation;
    ASSERT_EQ(kmes_reserve(&world.cpu, &input, &reservation), 0);
    kmes_abandon(&world.cpu, &reservation);
    EXPECT_EQ(world.first().shared_tail_pos(), 128u);
    EXPECT_EQ(world.first().shared_write_pos(), 256u);
    EXPECT_EQ(world.cpu.sequence, 2u);
    ASSERT_EQ(world.emit_sized(40), 0);
    EXPECT_EQ(world.cpu.sequence, 3u) << "the number of the abandoned one is given again";
    EXPECT_EQ(world.first().shared_write_pos(), 296u);
}

TEST(Reserve, TooLargeLeavesTheCriticalSectionAndUsesANumber) {
    World world({});
    const kmes_event_input large = input_of("t", 1, 100);
    kmes_reservation reservation;
    EXPECT_EQ(kmes_reserve(&world.cpu, &large, &reservation), -ENOSPC);
    EXPECT_EQ(world.cpu.sequence, 1u);
    EXPECT_EQ(world.emit_sized(30), 0);
}

TEST(Batch, OfTheCallStopsWithoutUsingANumber) {
    World world({});
    kmes_batch batch;
    kmes_batch_begin(&world.cpu, &batch);
    const kmes_event_input small = input_of("t", 1, 1);
    const kmes_event_input large = input_of("t", 1, 100);
    EXPECT_EQ(kmes_batch_emit_call(&world.cpu, &batch, &small), 0);
    EXPECT_EQ(kmes_batch_emit_call(&world.cpu, &batch, &large), -ENOSPC);
    kmes_batch_end(&world.cpu, &batch);
    EXPECT_EQ(world.cpu.sequence, 1u);
    EXPECT_EQ(world.first().shared_write_pos(), 31u);
    EXPECT_EQ(world.cpu.statistics.dropped, 0u);
}

// 5.1.7, last rule: a single need_wake check covers the entire batch.
TEST(Batch, WakesOnceAtItsEndAndNotWhenNothingWasWritten) {
    World world({});
    *world.first().buffer.shared.need_wake = 1;
    kmes_batch batch;
    kmes_batch_begin(&world.cpu, &batch);
    for (int i = 0; i < 7; i++) ASSERT_EQ(world.batch_emit_sized(batch, 60), 0);  // E8 publishes
    EXPECT_TRUE(world.wakes.empty());
    kmes_batch_end(&world.cpu, &batch);
    EXPECT_EQ(world.wakes_of(world.first()), 1u);
    EXPECT_EQ(*world.first().buffer.shared.futex_counter, 1u);
    kmes_batch_begin(&world.cpu, &batch);
    kmes_batch_end(&world.cpu, &batch);
    EXPECT_EQ(world.wakes_of(world.first()), 1u);
}

// E16: "an interrupt inside a batch appends behind what the batch has written and publishes all".
TEST(Batch, IsPublishedByAnEventThatComesInBetween) {
    World world({});
    kmes_batch batch;
    kmes_batch_begin(&world.cpu, &batch);
    ASSERT_EQ(world.batch_emit_sized(batch, 40), 0);
    ASSERT_EQ(world.emit_sized(50), 0);
    EXPECT_EQ(world.first().shared_write_pos(), 90u);
    ASSERT_EQ(world.batch_emit_sized(batch, 60), 0);
    EXPECT_EQ(world.first().shared_write_pos(), 90u);
    kmes_batch_end(&world.cpu, &batch);
    EXPECT_EQ(world.first().shared_write_pos(), 150u);
    EXPECT_EQ(world.cpu.sequence, 3u);
}

TEST(Batch, GoesOnInTheNewBufferAfterASwap) {
    World world({});
    kmes_batch batch;
    kmes_batch_begin(&world.cpu, &batch);
    ASSERT_EQ(world.batch_emit_sized(batch, 40), 0);
    ASSERT_EQ(world.swap(512), 0);
    EXPECT_EQ(world.first().shared_write_pos(), 40u) << "published before the buffer is frozen";
    EXPECT_EQ(world.current().shared_write_pos(), 40u);
    ASSERT_EQ(world.batch_emit_sized(batch, 40), 0);
    EXPECT_EQ(world.current().shared_write_pos(), 40u);
    kmes_batch_end(&world.cpu, &batch);
    EXPECT_EQ(world.current().shared_write_pos(), 80u);
    EXPECT_EQ(world.first().shared_write_pos(), 40u);
}

// 5.1.7 step 9; E13: "need_wake is the only field read back, as zero or not zero".
TEST(Wake, IsGivenForAnyFlagThatIsNotZeroAndTheFlagIsLeftAlone) {
    for (const int flag : {0, 1, 2, 0x80, 0xFF}) {
        World world({});
        *world.first().buffer.shared.need_wake = static_cast<std::uint8_t>(flag);
        ASSERT_EQ(world.emit_sized(30), 0);
        EXPECT_EQ(world.wakes_of(world.first()), flag ? 1u : 0u) << flag;
        EXPECT_EQ(*world.first().buffer.shared.futex_counter, flag ? 1u : 0u) << flag;
        EXPECT_EQ(world.cpu.statistics.wakes, flag ? 1u : 0u) << flag;
        EXPECT_EQ(*world.first().buffer.shared.need_wake, flag) << "E12: never written";
    }
}

// E13: whatever a consumer writes to the page, only its own wakes change.
TEST(HostileConsumer, ChangesNothingByWritingAllOfThePageBetweenSteps) {
    World clean({.start_pos = 1000});
    World attacked({.start_pos = 1000});
    std::uint8_t fill = 0;
    auto vandalise = [&] { memset(attacked.current().memory.base(), fill += 0x5B, 4096); };
    auto compare = [&] {
        EXPECT_EQ(attacked.current().survivors(), clean.current().survivors());
        EXPECT_EQ(attacked.cpu.sequence, clean.cpu.sequence);
        EXPECT_EQ(attacked.cpu.statistics.overwritten, clean.cpu.statistics.overwritten);
        EXPECT_EQ(attacked.cpu.statistics.corrupt, 0u);
    };
    const std::uint64_t sizes[] = {30, 100, 128, 31, 64, 129, 30, 90, 77};
    for (int round = 0; round < 4; round++) {
        for (const std::uint64_t size : sizes) {
            vandalise();
            EXPECT_EQ(attacked.emit_sized(size), clean.emit_sized(size));
            compare();
        }
        vandalise();
        const std::uint64_t capacity = round % 2 ? 256 : 512;
        ASSERT_EQ(attacked.swap(capacity), 0);
        ASSERT_EQ(clean.swap(capacity), 0);
        EXPECT_EQ(attacked.current().page(), clean.current().page());
        compare();
    }
}

// The same between any two accesses of one emission: nothing is read back but need_wake.
TEST(HostileConsumer, ChangesNothingByWritingThePageInsideAnEmission) {
    World clean({});
    World attacked({});
    for (int i = 0; i < 12; i++) {
        {
            ScopedHook hook([&](const kmes_order_access&) {
                memset(attacked.first().memory.base(), 0xEE, 4096);
            });
            ASSERT_EQ(attacked.emit_sized(30 + 11 * i % 90), 0);
        }
        ASSERT_EQ(clean.emit_sized(30 + 11 * i % 90), 0);
        EXPECT_EQ(attacked.first().survivors(), clean.first().survivors());
    }
    EXPECT_EQ(attacked.first().buffer.published, clean.first().buffer.published);
    EXPECT_EQ(attacked.first().buffer.futex_counter, 12u) << "its own wakes";
}

// E16: an emission that interrupts another writes nothing; its number is used before the next one.
TEST(NestedEmission, FromTheClockIsTurnedAwayAndItsNumberShowsAsAGap) {
    World world({});
    int nested = 1;
    world.on_clock = [&] {
        world.on_clock = nullptr;
        nested = world.emit_sized(40);
    };
    ASSERT_EQ(world.emit_sized(50), 0);
    EXPECT_EQ(nested, -EBUSY);
    EXPECT_EQ(world.first().shared_write_pos(), 50u);
    ASSERT_EQ(world.emit_sized(60), 0);
    EXPECT_EQ(world.cpu.sequence, 3u);
    EXPECT_EQ(world.cpu.statistics.dropped_nested, 1u);
    EXPECT_EQ(world.cpu.statistics.events, 2u);
}

// The same for a reservation: earlier nested emissions get their numbers before it.
TEST(NestedEmission, FromTheClockOfAReservationUsesTheNumberBeforeIt) {
    World world({});
    world.on_clock = [&] {
        world.on_clock = nullptr;
        EXPECT_EQ(world.emit_sized(40), -EBUSY);
    };
    const kmes_event_input input = input_of("t", 1, 0);
    kmes_reservation reservation;
    ASSERT_EQ(kmes_reserve(&world.cpu, &input, &reservation), 0);
    EXPECT_EQ(reservation.sequence, 2u);
    kmes_commit(&world.cpu, &reservation);
    EXPECT_EQ(world.cpu.sequence, 2u);
    EXPECT_EQ(world.cpu.statistics.dropped_nested, 1u);
}

// E16, at every access of an emission that laps and wakes. The nested emission is turned away and
// counted once, and the interrupted one is as it would have been.
TEST(NestedEmission, IsTurnedAwayAtEveryAccess) {
    for (std::size_t at = 0;; at++) {
        World world({});
        for (int i = 0; i < 4; i++) ASSERT_EQ(world.emit_sized(60), 0);
        *world.first().buffer.shared.need_wake = 1;
        std::size_t seen = 0;
        int nested = 1;
        {
            ScopedHook hook([&](const kmes_order_access&) {
                if (seen++ == at) nested = world.emit_sized(33);
            });
            ASSERT_EQ(world.emit_sized(60), 0);
        }
        if (seen <= at) {
            EXPECT_GT(at, 10u);
            break;
        }
        EXPECT_EQ(nested, -EBUSY) << at;
        EXPECT_EQ(world.first().shared_write_pos(), 300u) << at;
        EXPECT_EQ(world.first().survivors().size(), 240u) << at;
        ASSERT_EQ(world.emit_sized(30), 0);
        EXPECT_EQ(world.cpu.sequence, 7u) << at;
        EXPECT_EQ(world.cpu.statistics.dropped_nested, 1u) << at;
    }
}

TEST(NestedEmission, ByTheCallOrDuringAReservationOrABatchWritesNothing) {
    World world({});
    const kmes_event_input input = input_of("t", 1, 5);
    kmes_reservation reservation, inner;
    ASSERT_EQ(kmes_reserve(&world.cpu, &input, &reservation), 0);
    EXPECT_EQ(kmes_cpu_emit_call(&world.cpu, &input), -EBUSY);  // an error, and so no number
    EXPECT_EQ(kmes_cpu_emit(&world.cpu, &input), -EBUSY);
    EXPECT_EQ(kmes_reserve(&world.cpu, &input, &inner), -EBUSY);
    kmes_batch batch;
    kmes_batch_begin(&world.cpu, &batch);
    EXPECT_EQ(kmes_batch_emit(&world.cpu, &batch, &input), -EBUSY);
    EXPECT_EQ(kmes_batch_emit_call(&world.cpu, &batch, &input), -EBUSY);
    kmes_batch_end(&world.cpu, &batch);
    EXPECT_EQ(world.first().shared_write_pos(), 0u);
    kmes_commit(&world.cpu, &reservation);
    EXPECT_EQ(world.first().shared_write_pos(), 35u);
    ASSERT_EQ(world.emit_sized(30), 0);
    EXPECT_EQ(world.cpu.sequence, 5u) << "1, three that were turned away, 5";
    EXPECT_EQ(world.cpu.statistics.dropped_nested, 3u);
}

// E16: "the same guard covers swaps".
// "Nothing done": what a batch has pending is as little published as the buffer is retired.
TEST(NestedEmission, KeepsTheEndOutOfABatch) {
    World world({});
    kmes_batch batch;
    kmes_batch_begin(&world.cpu, &batch);
    ASSERT_EQ(world.batch_emit_sized(batch, 40), 0);
    const std::vector<std::uint8_t> page = world.first().page();
    int ends = 0;
    {
        ScopedHook hook([&](const kmes_order_access& access) {
            if (access.label != KMES_ORDER_DATA || ends++) return;
            EXPECT_EQ(kmes_cpu_retire(&world.cpu), -EBUSY);
            EXPECT_EQ(world.first().page(), page);
        });
        ASSERT_EQ(world.batch_emit_sized(batch, 40), 0);
    }
    EXPECT_GT(ends, 0);
    EXPECT_EQ(world.first().page(), page);
    kmes_batch_end(&world.cpu, &batch);
    EXPECT_EQ(world.first().shared_write_pos(), 80u);
}

TEST(NestedEmission, KeepsSwapsNudgesAndTheEndOut) {
    World world({});
    ASSERT_EQ(world.swap(256), 0);
    TestBuffer& fresh = world.make_buffer(512);
    TestBuffer& other = world.make_buffer(512);
    kmes_swap begun;
    ASSERT_EQ(kmes_swap_begin(&begun, &world.cpu, &other.buffer, KMES_SWAP_KEEP, 0), 0);
    kmes_swap swap;
    const kmes_event_input input = input_of("t", 1, 5);
    kmes_reservation reservation;
    ASSERT_EQ(kmes_reserve(&world.cpu, &input, &reservation), 0);
    EXPECT_EQ(kmes_swap_begin(&swap, &world.cpu, &fresh.buffer, KMES_SWAP_KEEP, 0), -EBUSY);
    EXPECT_EQ(kmes_swap_run(&world.cpu, &fresh.buffer, KMES_SWAP_KEEP, 0), -EBUSY);
    EXPECT_FALSE(kmes_swap_copy(&begun));
    EXPECT_EQ(kmes_swap_finish(&begun), -EBUSY);
    EXPECT_EQ(kmes_buffer_nudge(&world.cpu, &world.first().buffer), -EBUSY);
    EXPECT_EQ(kmes_cpu_retire(&world.cpu), -EBUSY);
    EXPECT_EQ(*world.first().buffer.shared.generation, 2u);
    kmes_commit(&world.cpu, &reservation);
    EXPECT_EQ(kmes_swap_finish(&begun), 0) << "call again";
    EXPECT_EQ(world.cpu.buffer, &other.buffer);
    EXPECT_EQ(other.shared_write_pos(), 35u);
}

// The platform's critical section: entered and left equally often; an emission that it refuses is
// turned away.
TEST(CriticalSection, OfThePlatformIsEnteredAndLeftInPairs) {
    struct Section {
        World* world;
        int depth = 0, entered = 0;
        bool open = true;
    } section;
    World world({});
    section.world = &world;
    kmes_platform platform{};
    platform.context = &section;
    platform.clock_ns = [](void* context) -> __u64 {
        EXPECT_EQ(static_cast<Section*>(context)->depth, 1) << "E16: the timestamp is taken inside";
        return 1;
    };
    platform.enter = [](void* context) {
        auto* self = static_cast<Section*>(context);
        if (!self->open) return false;
        self->depth++;
        self->entered++;
        return true;
    };
    platform.exit = [](void* context) { static_cast<Section*>(context)->depth--; };
    platform.queue_wake = [](void* context, kmes_buffer*) {
        EXPECT_EQ(static_cast<Section*>(context)->depth, 1) << "E16: the wake is queued inside";
    };
    world.cpu.platform = &platform;
    *world.first().buffer.shared.need_wake = 1;
    EXPECT_EQ(world.emit_sized(30), 0);
    EXPECT_EQ(world.emit_sized(200), -ENOSPC);
    EXPECT_EQ(section.depth, 0);
    section.open = false;
    EXPECT_EQ(world.emit_sized(30), -EBUSY);
    section.open = true;
    EXPECT_EQ(world.emit_sized(30), 0);
    EXPECT_EQ(world.cpu.sequence, 4u);
    EXPECT_EQ(section.depth, 0);
    EXPECT_EQ(section.entered, 3);
}

// If the platform lets a context in (an NMI) that finds `inside` set, the platform's section is
// left.
TEST(CriticalSection, IsLeftWhenTheCoreItselfTurnsTheEmissionAway) {
    static int depth;
    depth = 0;
    World world({});
    world.platform.enter = [](void*) {
        depth++;
        return true;
    };
    world.platform.exit = [](void*) { depth--; };
    world.on_clock = [&] {
        world.on_clock = nullptr;
        EXPECT_EQ(world.emit_sized(30), -EBUSY);
        EXPECT_EQ(depth, 1);
    };
    EXPECT_EQ(world.emit_sized(30), 0);
    EXPECT_EQ(depth, 0);
}

}  // namespace
}  // namespace kmes::tests
