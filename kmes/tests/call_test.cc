// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * kmes_emit with arguments that lie, fault and change. Tests each promise of kmes/call.h with the
 * bytes of the ring and the list of fetches.
 */
#include "kmes/call.h"

#include <gtest/gtest.h>

#include "kmes/tests/bytes.h"
#include "kmes/tests/call_fixture.h"
#include "kmes/tests/caller_memory.h"
#include "kmes/tests/world.h"

namespace kmes::tests {
namespace {

TEST_F(CallTest, AnEventHasTheBytesThatTheCallerHadAndTheMetadataSaysSo) {
    start({.capacity_bytes = 256, .start_pos = 0, .generation = 3, .cpu_id = 5});
    world_->now_ns = 0x0102030405060708;
    call_.origin_class = KMES_ORIGIN_LCS;
    memory_.put(kType, "ab");
    memory_.put(kPayload, "xyz");
    ASSERT_EQ(emit(kType, 2, kPayload, 3), 0);
    const Bytes expected = {
        34,  0,   0,   0,                  // event_size
        31,  0,   0,   0,                  // header_size 29 + 2
        8,   7,   6,   5,   4,   3, 2, 1,  // timestamp
        1,   0,   0,   0,   0,   0, 0, 0,  // sequence
        5,   0,                            // cpu_id
        3,                                 // origin_class
        2,   0,                            // type_len
        'a', 'b', 'x', 'y', 'z',
    };
    EXPECT_EQ(world_->first().survivors(), expected);
    EXPECT_EQ(world_->first().memory.data_bytes(34, 64), filled(64, 0));
    EXPECT_EQ(world_->first().page(), page_of({
                                          {0, {'K', 'M', 'E', 'S', 'R', 'I', 'N', 'G', 1, 0, 0, 0}},
                                          {12, {5, 0}},
                                          {16, {0, 1}},     // capacity 256
                                          {24, {0, 0x10}},  // data_offset 4096
                                          {32, {3}},        // generation
                                          {64, {34}},       // write_pos
                                      }));
    EXPECT_EQ(memory_.fetches, (Fetches{{kType, 2}, {kPayload, 3}}));
    EXPECT_EQ(world_->cpu.statistics.events, 1u);
    EXPECT_EQ(world_->cpu.statistics.bytes, 34u);
}

TEST_F(CallTest, APayloadOfOneByteIsFetched) {
    memory_.put(kType, "t");
    memory_.put(kPayload, "p");
    EXPECT_EQ(emit(kType, 1, kPayload, 1), 0);
    EXPECT_EQ(world_->first().survivors()[30], 'p');
    EXPECT_EQ(memory_.fetches, (Fetches{{kType, 1}, {kPayload, 1}}));
}

// event-model.md: the payload may be empty.
TEST_F(CallTest, APayloadOfZeroBytesIsNotFetchedWhateverItsPointer) {
    memory_.put(kType, "t");
    EXPECT_EQ(emit(kType, 1, 0, 0), 0);
    EXPECT_EQ(emit(kType, 1, kNowhere, 0), 0);
    EXPECT_EQ(memory_.fetches, (Fetches{{kType, 1}, {kType, 1}}));
    EXPECT_EQ(world_->first().shared_write_pos(), 60u);
    EXPECT_EQ(world_->cpu.sequence, 2u);
}

// event-model.md: type_len 0 is EINVAL. It is the first of all errors.
TEST_F(CallTest, ATypeOfZeroBytesIsInvalidBeforeAnythingElse) {
    memory_.put(kType, "t");
    memory_.put(kPayload, "p");
    EXPECT_EQ(emit(kType, 0, kPayload, 1), -EINVAL);
    EXPECT_EQ(emit(kNowhere, 0, kNowhere, ~0u), -EINVAL) << "before it is too large";
    world_->cpu.inside = 1;
    EXPECT_EQ(emit(kType, 0, kPayload, 1), -EINVAL) << "before it is nested";
    world_->cpu.inside = 0;
    EXPECT_EQ(memory_.fetches, Fetches{});
    expect_nothing_happened();
}

// event-model.md: a type that is not UTF-8 is EINVAL.
TEST_F(CallTest, ATypeThatIsNotUtf8IsInvalidAndThePayloadIsLeftAlone) {
    memory_.put(kType, "a\xFF");
    EXPECT_EQ(emit(kType, 2, kNowhere, 4), -EINVAL);
    EXPECT_EQ(memory_.fetches, (Fetches{{kType, 2}}));
    EXPECT_EQ(emit(kType, 2, 0, 0), -EINVAL) << "without a payload, too";
    expect_nothing_happened();
    EXPECT_EQ(emit(kType, 1, 0, 0), 0) << "only the bytes of the type are read";
}

// event-model.md: an event over MaxEventSize is ENOSPC. 101 bytes are; 100 are not.
TEST_F(CallTest, AnEventOverMaxEventSizeIsRefusedBeforeAnythingIsFetched) {
    start({.capacity_bytes = 1024}, 100);
    EXPECT_EQ(emit_of(101), -ENOSPC);
    EXPECT_EQ(emit(kNowhere, 65535, kNowhere, 0), -ENOSPC);
    world_->cpu.inside = 1;
    EXPECT_EQ(emit(kNowhere, 1, kNowhere, 71), -ENOSPC) << "before it is nested";
    world_->cpu.inside = 0;
    EXPECT_EQ(memory_.fetches, Fetches{});
    expect_nothing_happened();
    EXPECT_EQ(emit_of(100), 0);
    EXPECT_EQ(world_->first().shared_write_pos(), 100u);
}

// event-model.md: an event over 50 % of the capacity is ENOSPC. Half is not over half.
TEST_F(CallTest, AnEventOverHalfTheCapacityIsRefusedBeforeAnythingIsFetched) {
    EXPECT_EQ(emit_of(129), -ENOSPC);
    EXPECT_EQ(memory_.fetches, Fetches{});
    expect_nothing_happened();
    EXPECT_EQ(emit_of(128), 0);
    EXPECT_EQ(world_->first().shared_write_pos(), 128u);
}

// 29 + 30 + 2^32 - 1 is 58 in 32 bits.
TEST_F(CallTest, SizesAreAddedUpInMoreThan32Bits) {
    EXPECT_EQ(emit(kNowhere, 30, kNowhere, ~0u), -ENOSPC);
    call_.max_event_bytes = ~0ull;
    EXPECT_EQ(emit(kNowhere, 30, kNowhere, ~0u), -ENOSPC);
    EXPECT_EQ(memory_.fetches, Fetches{});
    expect_nothing_happened();
}

TEST_F(CallTest, AFaultOfTheTypeOrThePayloadIsHandedOnAndNothingIsWritten) {
    memory_.put(kType, "type");
    memory_.put(kPayload, "pay");
    EXPECT_EQ(emit(kNowhere, 4, kPayload, 3), -EFAULT);
    EXPECT_EQ(memory_.fetches, (Fetches{{kNowhere, 4}})) << "later arguments are not fetched";
    EXPECT_EQ(emit(kType, 4, kPayload, 4), -EFAULT);
    EXPECT_EQ(emit(0, 4, kPayload, 3), -EFAULT);
    EXPECT_EQ(emit(kType, 4, ~0ull, 3), -EFAULT);
    memory_.fail_error = -EINTR;
    memory_.fail_at = memory_.fetches.size();
    EXPECT_EQ(emit(kType, 4, kPayload, 3), -EINTR) << "whatever the fetch says";
    memory_.fail_at = memory_.fetches.size() + 1;
    EXPECT_EQ(emit(kType, 4, kPayload, 3), -EINTR);
    expect_nothing_happened();
    EXPECT_EQ(emit(kType, 4, kPayload, 3), 0);
    EXPECT_EQ(world_->cpu.sequence, 1u);
}

// The type was UTF-8 when it was fetched. Later changes by the caller are never seen.
TEST_F(CallTest, WhatTheCallerChangesAfterTheFetchIsNotSeen) {
    memory_.put(kType, "ab");
    memory_.put(kPayload, "cd");
    memory_.after_fetch = [&](const CallerMemory::Fetch& fetch) {
        memory_.put(fetch.address, "\xFF\xFF");
    };
    ASSERT_EQ(emit(kType, 2, kPayload, 2), 0);
    EXPECT_EQ(memory_.fetches, (Fetches{{kType, 2}, {kPayload, 2}})) << "each byte once";
    const Bytes tail = {'a', 'b', 'c', 'd'};
    EXPECT_EQ(world_->first().memory.data_bytes(29, 4), tail);
}

// E16; the emit calls count nothing and use no number.
TEST_F(CallTest, ANestedCallIsTurnedAwayBeforeAnythingIsFetched) {
    int nested = 1;
    int nested_batch = 1;

    put_sound_entry(0);
    world_->on_clock = [&] {
        world_->on_clock = nullptr;
        nested = emit(kType, 1, kPayload, 2);
        EXPECT_EQ(memory_.fetches, Fetches{});
        nested_batch = batch(1);
        EXPECT_EQ(memory_.fetches, (Fetches{{kEntries, 32}}));
    };
    EXPECT_EQ(world_->emit("outer", "o"), 0);
    EXPECT_EQ(nested, -EBUSY);
    EXPECT_EQ(nested_batch, -EBUSY);
    EXPECT_EQ(emitted_, 0u);
    EXPECT_EQ(world_->emit("outer", "o"), 0);
    EXPECT_EQ(world_->cpu.sequence, 2u);
    EXPECT_EQ(world_->cpu.statistics.dropped_nested, 0u);
    EXPECT_EQ(world_->cpu.statistics.events, 2u);
}

TEST_F(CallTest, APlatformThatLetsNobodyInIsBusyBeforeAnythingIsFetched) {
    Section section;

    section.watch(world_.get());
    section.is_closed = true;
    EXPECT_EQ(emit(kType, 1, kPayload, 2), -EBUSY);
    EXPECT_EQ(memory_.fetches, Fetches{});
    section.is_closed = false;
    put_sound_entry(0);
    memory_.after_fetch = [&](const CallerMemory::Fetch& fetch) {
        section.is_closed = fetch.address == kPayload;
    };
    EXPECT_EQ(emit(kType, 1, kPayload, 2), -EBUSY) << "it ended while the payload was fetched";
    EXPECT_EQ(section.depth, 0);
    expect_nothing_happened();
}

// The critical section turns interrupts off, so the data of the caller is copied before it.
TEST_F(CallTest, NothingIsFetchedInsideTheCriticalSection) {
    Section section;

    section.watch(world_.get());
    memory_.after_fetch = [&](const CallerMemory::Fetch&) {
        EXPECT_EQ(section.depth, 0);
        EXPECT_EQ(world_->cpu.inside, 0u);
    };
    put_sound_entry(0);
    put_sound_entry(1);
    EXPECT_EQ(emit(kType, 1, kPayload, 2), 0);
    EXPECT_EQ(section.entered, 2) << "to load the capacity, and to emit";
    EXPECT_EQ(section.depth, 0);
    EXPECT_EQ(batch(2), 0);
    EXPECT_EQ(section.entered, 7) << "twice for each entry, once for its end";
    EXPECT_EQ(section.depth, 0);
    EXPECT_EQ(memory_.fetches.size(), 2u + 6u);
}

// A resize on another thread: the capacity is read while no swap is possible.
TEST_F(CallTest, TheCapacityIsReadWithEverybodyKeptOut) {
    Section section;

    section.watch(world_.get());
    section.on_enter = [&] { ASSERT_EQ(world_->swap(512), 0); };
    section.on_exit = [&] { ASSERT_EQ(world_->swap(256), 0); };
    // 200 bytes: over half of 256, not over half of 512.
    EXPECT_EQ(emit_of(200), -ENOSPC) << "found once more, inside";
    EXPECT_EQ(memory_.fetches.size(), 2u) << "but not before";
    memory_.fetches.clear();
    ASSERT_EQ(world_->swap(512), 0);
    section.on_enter = [&] { ASSERT_EQ(world_->swap(256), 0); };
    section.on_exit = [&] { ASSERT_EQ(world_->swap(512), 0); };
    EXPECT_EQ(emit_of(200), -ENOSPC);
    EXPECT_EQ(memory_.fetches, Fetches{});
    EXPECT_EQ(world_->cpu.sequence, 0u);
    EXPECT_EQ(emit_of(200), 0);
}

// Another thread is inside until this one enters, and another one after it.
TEST_F(CallTest, WhoeverIsInsideOnAnotherThreadDoesNotMakeACallNested) {
    Section section;

    section.watch(world_.get());
    put_sound_entry(0);
    world_->cpu.inside = 1;
    section.on_enter = [&] { world_->cpu.inside = 0; };
    section.on_exit = [&] { world_->cpu.inside = 1; };
    memory_.after_fetch = [&](const CallerMemory::Fetch&) { world_->cpu.inside = 0; };
    EXPECT_EQ(emit(kType, 1, kPayload, 2), 0);
    EXPECT_EQ(memory_.fetches.size(), 2u);
}

// E16: an NMI during the load of the capacity emits as if nothing were running.
TEST_F(CallTest, LoadingTheCapacityDropsNobodysEvent) {
    unsigned inside = 1;

    put_sound_entry(0);
    world_->platform.enter = [](void*) { return true; };
    world_->platform.exit = [](void* context) {
        auto* world = static_cast<World*>(context);

        if (world->on_clock) world->on_clock();
    };
    world_->on_clock = [&] {
        world_->on_clock = nullptr;
        inside = world_->cpu.inside;
    };
    EXPECT_EQ(emit(kNowhere, 1, kPayload, 2), -EFAULT);
    EXPECT_EQ(inside, 0u);
}

// event-model.md: the size is checked before the critical section, and again inside of it.
TEST_F(CallTest, AResizeBetweenTheChecksIsFoundInside) {
    start({.capacity_bytes = 512});
    memory_.after_fetch = [&](const CallerMemory::Fetch& fetch) {
        if (fetch.address == kPayload) {
            EXPECT_EQ(world_->swap(256), 0);
        }
    };
    EXPECT_EQ(emit_of(129), -ENOSPC);
    EXPECT_EQ(world_->cpu.sequence, 0u);
    EXPECT_EQ(world_->cpu.statistics.dropped, 0u);
    EXPECT_EQ(world_->current().shared_write_pos(), 0u);
    memory_.after_fetch = nullptr;
    EXPECT_EQ(emit_of(128), 0);
    EXPECT_EQ(world_->current().shared_write_pos(), 128u);
}

}  // namespace
}  // namespace kmes::tests
