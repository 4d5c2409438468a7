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

constexpr std::uint8_t kFixed = KMES_EVENT_FIXED_BYTES;

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
    ASSERT_EQ(world.emit_sized(30_b), 0);
    EXPECT_EQ(cpu.sequence, 42u);
    EXPECT_EQ(cpu.statistics.dropped_nested, 0u);
}

// 5.1.7 step 5: "exceeds 50 %": half is not over half.
TEST(Emit, TakesAnEventOfExactlyHalfTheCapacity) {
    World world({});
    EXPECT_EQ(world.emit_sized(128_b), 0);
    EXPECT_EQ(world.emit_sized(129_b), -ENOSPC);
    EXPECT_EQ(world.cpu.sequence, 2u);
    EXPECT_EQ(world.cpu.statistics.dropped, 1u);
    EXPECT_EQ(world.cpu.statistics.events, 1u);
    EXPECT_EQ(world.cpu.statistics.bytes, 128_b);
}

TEST(Emit, RefusesAnEventWithoutATypeAndDoesNothing) {
    World world({});
    const kmes_event_input input = input_of("", 0, 4);
    EXPECT_EQ(kmes_cpu_emit(&world.cpu, &input), -EINVAL);
    EXPECT_EQ(kmes_cpu_emit_call(&world.cpu, &input), -EINVAL);
    kmes_reservation reservation;
    EXPECT_EQ(kmes_reserve(&world.cpu, &input, &reservation), -EINVAL);
    EXPECT_EQ(world.cpu.sequence, 0u);
    EXPECT_EQ(world.emit_sized(30_b), 0) << "the critical section was left";
}

TEST(Emit, DropsSizesThatDoNotFitInto32Bits) {
    World world({});
    kmes_event_input input = input_of("t", 1, 0xFFFFFFFF);
    EXPECT_EQ(kmes_cpu_emit(&world.cpu, &input), -ENOSPC);
    input.payload_len = 2;
    input.header_extra_len = 0xFFFFFFFF;  // 29 + 1 + 2 + 2^32 - 1 is 31 modulo 2^32 (form A)
    EXPECT_EQ(kmes_cpu_emit(&world.cpu, &input), -ENOSPC);
    EXPECT_EQ(world.first().shared_write_pos(), 0_b);
}

// event-model.md, kmes_emit: after ENOSPC nothing is written, and no sequence number is used.
TEST(EmitCall, UsesNoNumberForAnEventThatIsTooLarge) {
    World world({});
    const kmes_event_input large = input_of("t", 1, 129_b - KMES_EVENT_MIN_BYTES);
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
    EXPECT_EQ(world.first().shared_write_pos(), 0_b);
    kmes_reservation_fill(&world.cpu, &reservation, 3, "cdXX",
                          4);  // the bytes after these are not copied
    kmes_reservation_fill(&world.cpu, &reservation, 0, "zab", 3);
    kmes_reservation_fill(&world.cpu, &reservation, 5, "Y", 1);
    kmes_commit(&world.cpu, &reservation);
    EXPECT_EQ(world.first().shared_write_pos(), kFixed + 2 + 5);
    Bytes expected(kFixed, 0);
    expected[0] = kFixed + 2 + 5;  // event_size
    expected[4] = kFixed + 2;      // header_size
    expected[8] = 9;               // timestamp
    expected[16] = 1;              // sequence
    expected[kFixed - 2] = 2;      // type_len
    expected = joined({expected, {'t', 'y', 'z', 'a', 'b', 'c', 'd'}});
    EXPECT_EQ(world.first().survivors(), expected);
    EXPECT_EQ(world.first().memory.data_bytes(expected.size(), 8), filled(8, 0))
        << "nothing beyond the event";
}

TEST(Reserve, GivesOneContiguousPayloadOverTheEndOfTheData) {
    World world({.capacity_bytes = 4096_b, .start_pos = 4096_b - KMES_EVENT_MIN_BYTES - 10});
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
    ASSERT_EQ(world.emit_sized(128_b), 0);
    ASSERT_EQ(world.emit_sized(128_b), 0);
    const kmes_event_input input = input_of("t", 1, 10);
    kmes_reservation reservation;
    ASSERT_EQ(kmes_reserve(&world.cpu, &input, &reservation), 0);
    kmes_abandon(&world.cpu, &reservation);
    EXPECT_EQ(world.first().shared_tail_pos(), 128_b);
    EXPECT_EQ(world.first().shared_write_pos(), 256_b);
    EXPECT_EQ(world.cpu.sequence, 2u);
    ASSERT_EQ(world.emit_sized(40_b), 0);
    EXPECT_EQ(world.cpu.sequence, 3u) << "the number of the abandoned one is given again";
    EXPECT_EQ(world.first().shared_write_pos(), 296_b);
}

TEST(Reserve, TooLargeLeavesTheCriticalSectionAndUsesANumber) {
    World world({});
    const kmes_event_input large = input_of("t", 1, 129_b - KMES_EVENT_MIN_BYTES);
    kmes_reservation reservation;
    EXPECT_EQ(kmes_reserve(&world.cpu, &large, &reservation), -ENOSPC);
    EXPECT_EQ(world.cpu.sequence, 1u);
    EXPECT_EQ(world.emit_sized(30_b), 0);
}

TEST(Batch, OfTheCallStopsWithoutUsingANumber) {
    World world({});
    kmes_batch batch;
    kmes_batch_begin(&world.cpu, &batch);
    const kmes_event_input small = input_of("t", 1, 1);
    const kmes_event_input large = input_of("t", 1, 129_b - KMES_EVENT_MIN_BYTES);
    EXPECT_EQ(kmes_batch_emit_call(&world.cpu, &batch, &small), 0);
    EXPECT_EQ(kmes_batch_emit_call(&world.cpu, &batch, &large), -ENOSPC);
    kmes_batch_end(&world.cpu, &batch);
    EXPECT_EQ(world.cpu.sequence, 1u);
    EXPECT_EQ(world.first().shared_write_pos(), KMES_EVENT_MIN_BYTES + 1);
    EXPECT_EQ(world.cpu.statistics.dropped, 0u);
}

// 5.1.7, last rule: a single need_wake check covers the entire batch.
TEST(Batch, WakesOnceAtItsEndAndNotWhenNothingWasWritten) {
    World world({});
    *world.first().buffer.shared.need_wake = 1;
    kmes_batch batch;
    kmes_batch_begin(&world.cpu, &batch);
    for (int i = 0; i < 7; i++) ASSERT_EQ(world.batch_emit_sized(batch, 60_b), 0);  // E8 publishes
    EXPECT_TRUE(world.wakes.empty());
    kmes_batch_end(&world.cpu, &batch);
    EXPECT_EQ(world.wakes_of(world.first()), 1u);
    EXPECT_EQ(*world.first().buffer.shared.futex_counter, 1u);
    kmes_batch_begin(&world.cpu, &batch);
    kmes_batch_end(&world.cpu, &batch);
    EXPECT_EQ(world.wakes_of(world.first()), 1u);
}

// E16: an interrupt during a batch appends its event after the written part, and publishes all.
TEST(Batch, IsPublishedByAnEventThatComesInBetween) {
    World world({});
    kmes_batch batch;
    kmes_batch_begin(&world.cpu, &batch);
    ASSERT_EQ(world.batch_emit_sized(batch, 40_b), 0);
    ASSERT_EQ(world.emit_sized(50_b), 0);
    EXPECT_EQ(world.first().shared_write_pos(), 90_b);
    ASSERT_EQ(world.batch_emit_sized(batch, 60_b), 0);
    EXPECT_EQ(world.first().shared_write_pos(), 90_b);
    kmes_batch_end(&world.cpu, &batch);
    EXPECT_EQ(world.first().shared_write_pos(), 150_b);
    EXPECT_EQ(world.cpu.sequence, 3u);
}

TEST(Batch, GoesOnInTheNewBufferAfterASwap) {
    World world({});
    kmes_batch batch;
    kmes_batch_begin(&world.cpu, &batch);
    ASSERT_EQ(world.batch_emit_sized(batch, 40_b), 0);
    ASSERT_EQ(world.swap(512_b), 0);
    EXPECT_EQ(world.first().shared_write_pos(), 40_b) << "published before the buffer is frozen";
    EXPECT_EQ(world.current().shared_write_pos(), 40_b);
    ASSERT_EQ(world.batch_emit_sized(batch, 40_b), 0);
    EXPECT_EQ(world.current().shared_write_pos(), 40_b);
    kmes_batch_end(&world.cpu, &batch);
    EXPECT_EQ(world.current().shared_write_pos(), 80_b);
    EXPECT_EQ(world.first().shared_write_pos(), 40_b);
}

// 5.1.7 step 9; E13: need_wake is the only field that is read back, as zero or not zero.
TEST(Wake, IsGivenForAnyFlagThatIsNotZeroAndTheFlagIsLeftAlone) {
    for (const int flag : {0, 1, 2, 0x80, 0xFF}) {
        World world({});
        *world.first().buffer.shared.need_wake = static_cast<std::uint8_t>(flag);
        ASSERT_EQ(world.emit_sized(30_b), 0);
        EXPECT_EQ(world.wakes_of(world.first()), flag ? 1u : 0u) << flag;
        EXPECT_EQ(*world.first().buffer.shared.futex_counter, flag ? 1u : 0u) << flag;
        EXPECT_EQ(world.cpu.statistics.wakes, flag ? 1u : 0u) << flag;
        EXPECT_EQ(*world.first().buffer.shared.need_wake, flag) << "E12: never written";
    }
}

// E13: whatever a consumer writes to the page, only its own wakes change.
TEST(HostileConsumer, ChangesNothingByWritingAllOfThePageBetweenSteps) {
    World clean({.start_pos = 1000_b});
    World attacked({.start_pos = 1000_b});
    std::uint8_t fill = 0;
    auto vandalise = [&] {
        memset(attacked.current().memory.base(), fill += 0x5B, KMES_METADATA_BYTES);
    };
    auto compare = [&] {
        EXPECT_EQ(attacked.current().survivors(), clean.current().survivors());
        EXPECT_EQ(attacked.cpu.sequence, clean.cpu.sequence);
        EXPECT_EQ(attacked.cpu.statistics.overwritten, clean.cpu.statistics.overwritten);
        EXPECT_EQ(attacked.cpu.statistics.corrupt, 0u);
    };
    const std::uint64_t sizes[] = {30_b, 100_b, 128_b, 31_b, 64_b, 129_b, 30_b, 90_b, 77_b};
    for (int round = 0; round < 4; round++) {
        for (const std::uint64_t size : sizes) {
            vandalise();
            EXPECT_EQ(attacked.emit_sized(size), clean.emit_sized(size));
            compare();
        }
        vandalise();
        const std::uint64_t capacity = round % 2 ? 256_b : 512_b;
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
                memset(attacked.first().memory.base(), 0xEE, KMES_METADATA_BYTES);
            });
            ASSERT_EQ(attacked.emit_sized(30_b + 11 * i % 90_b), 0);
        }
        ASSERT_EQ(clean.emit_sized(30_b + 11 * i % 90_b), 0);
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
        nested = world.emit_sized(40_b);
    };
    ASSERT_EQ(world.emit_sized(50_b), 0);
    EXPECT_EQ(nested, -EBUSY);
    EXPECT_EQ(world.first().shared_write_pos(), 50_b);
    ASSERT_EQ(world.emit_sized(60_b), 0);
    EXPECT_EQ(world.cpu.sequence, 3u);
    EXPECT_EQ(world.cpu.statistics.dropped_nested, 1u);
    EXPECT_EQ(world.cpu.statistics.events, 2u);
}

// The same for a reservation: earlier nested emissions get their numbers before it.
TEST(NestedEmission, FromTheClockOfAReservationUsesTheNumberBeforeIt) {
    World world({});
    world.on_clock = [&] {
        world.on_clock = nullptr;
        EXPECT_EQ(world.emit_sized(40_b), -EBUSY);
    };
    const kmes_event_input input = input_of("t", 1, 0);
    kmes_reservation reservation;
    ASSERT_EQ(kmes_reserve(&world.cpu, &input, &reservation), 0);
    EXPECT_EQ(reservation.sequence, 2u);
    kmes_commit(&world.cpu, &reservation);
    EXPECT_EQ(world.cpu.sequence, 2u);
    EXPECT_EQ(world.cpu.statistics.dropped_nested, 1u);
}

// E16, at every access of an emission that laps and wakes. The nested emission is rejected and
// counted once, and the interrupted one is as it would have been.
TEST(NestedEmission, IsTurnedAwayAtEveryAccess) {
    for (std::size_t at = 0;; at++) {
        World world({});
        for (int i = 0; i < 4; i++) ASSERT_EQ(world.emit_sized(60_b), 0);
        *world.first().buffer.shared.need_wake = 1;
        std::size_t seen = 0;
        int nested = 1;
        {
            ScopedHook hook([&](const kmes_order_access&) {
                if (seen++ == at) nested = world.emit_sized(33_b);
            });
            ASSERT_EQ(world.emit_sized(60_b), 0);
        }
        if (seen <= at) {
            EXPECT_GT(at, 10u);
            break;
        }
        EXPECT_EQ(nested, -EBUSY) << at;
        EXPECT_EQ(world.first().shared_write_pos(), 300_b) << at;
        EXPECT_EQ(world.first().survivors().size(), 240_b) << at;
        ASSERT_EQ(world.emit_sized(30_b), 0);
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
    EXPECT_EQ(world.first().shared_write_pos(), 0_b);
    kmes_commit(&world.cpu, &reservation);
    EXPECT_EQ(world.first().shared_write_pos(), KMES_EVENT_MIN_BYTES + 5);
    ASSERT_EQ(world.emit_sized(30_b), 0);
    EXPECT_EQ(world.cpu.sequence, 5u) << "1, three that were turned away, 5";
    EXPECT_EQ(world.cpu.statistics.dropped_nested, 3u);
}

// E16: the same guard covers the end of a producer. The batch is not published, and the buffer is
// not retired.
TEST(NestedEmission, KeepsTheEndOutOfABatch) {
    World world({});
    kmes_batch batch;
    kmes_batch_begin(&world.cpu, &batch);
    ASSERT_EQ(world.batch_emit_sized(batch, 40_b), 0);
    const std::vector<std::uint8_t> page = world.first().page();
    int ends = 0;
    {
        ScopedHook hook([&](const kmes_order_access& access) {
            if (access.label != KMES_ORDER_DATA || ends++) return;
            EXPECT_EQ(kmes_cpu_retire(&world.cpu), -EBUSY);
            EXPECT_EQ(world.first().page(), page);
        });
        ASSERT_EQ(world.batch_emit_sized(batch, 40_b), 0);
    }
    EXPECT_GT(ends, 0);
    EXPECT_EQ(world.first().page(), page);
    kmes_batch_end(&world.cpu, &batch);
    EXPECT_EQ(world.first().shared_write_pos(), 80_b);
}

TEST(NestedEmission, KeepsSwapsNudgesAndTheEndOut) {
    World world({});
    ASSERT_EQ(world.swap(256_b), 0);
    TestBuffer& fresh = world.make_buffer(512_b);
    TestBuffer& other = world.make_buffer(512_b);
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
    EXPECT_EQ(other.shared_write_pos(), KMES_EVENT_MIN_BYTES + 5);
}

// The platform's critical section: entered and left equally often; an emission that it refuses is
// rejected.
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
    EXPECT_EQ(world.emit_sized(30_b), 0);
    EXPECT_EQ(world.emit_sized(200_b), -ENOSPC);
    EXPECT_EQ(section.depth, 0);
    section.open = false;
    EXPECT_EQ(world.emit_sized(30_b), -EBUSY);
    section.open = true;
    EXPECT_EQ(world.emit_sized(30_b), 0);
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
        EXPECT_EQ(world.emit_sized(30_b), -EBUSY);
        EXPECT_EQ(depth, 1);
    };
    EXPECT_EQ(world.emit_sized(30_b), 0);
    EXPECT_EQ(depth, 0);
}

}  // namespace
}  // namespace kmes::tests
