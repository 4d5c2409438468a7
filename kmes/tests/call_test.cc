// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The emit calls with descriptors that lie, fault and change. Tests each promise of kmes/call.h
 * with the bytes of the ring and the list of fetches. The bytes are those of form A
 * (docs/layouts.md).
 */
#include "kmes/call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "kmes/tests/bytes.h"
#include "kmes/tests/caller_memory.h"
#include "kmes/tests/world.h"

namespace kmes::tests {
namespace {

using Fetches = std::vector<CallerMemory::Fetch>;

constexpr std::uint64_t kType = 0x1000;      // where the caller has its type,
constexpr std::uint64_t kPayload = 0x20000;  // its payload,
constexpr std::uint64_t kEntries = 0x50000;  // and its entries
constexpr std::uint64_t kNowhere = 0xDEAD0000;

const void* at(std::uint64_t address) {
    return reinterpret_cast<const void*>(address);
}

/* One caller and the CPU that it calls. */
class CallTest : public testing::Test {
  protected:
    void start(const WorldSetup& setup, std::uint64_t max_event_bytes = 1024) {
        world_ = std::make_unique<World>(setup);
        staging_.assign(max_event_bytes < 4096 ? max_event_bytes : 4096, 'S');
        call_.cpu = &world_->cpu;
        call_.staging = staging_.data();
        call_.max_event_bytes = max_event_bytes;
        call_.fetch = CallerMemory::fetch;
        call_.context = &memory_;
        call_.origin_class = KMES_ORIGIN_USERSPACE;
    }

    void SetUp() override { start({}); }

    int emit(std::uint64_t type, std::uint16_t type_len, std::uint64_t payload,
             std::uint32_t payload_len) {
        return kmes_call_emit(&call_, at(type), type_len, at(payload), payload_len);
    }

    /* Emits with a type of one byte, and a payload that makes the event this many bytes long. */
    int emit_of(std::uint64_t event_bytes) {
        memory_.put(kType, "t");
        memory_.put(kPayload, std::string(event_bytes - 30, 'p'));
        return emit(kType, 1, kPayload, static_cast<std::uint32_t>(event_bytes - 30));
    }

    int batch(std::uint32_t count, std::uint64_t entries = kEntries) {
        emitted_ = 0xABCDEF;
        return kmes_call_emit_batch(&call_, static_cast<const kmes_emit_entry*>(at(entries)), count,
                                    &emitted_);
    }

    /* Puts entry i with the type "t" and a payload of `payload_len` digits i. */
    void put_sound_entry(std::uint32_t i, std::uint32_t payload_len = 2) {
        memory_.put(kType + 16 * i, "t");
        memory_.put(kPayload + 256 * i, std::string(payload_len, digit(i)));
        memory_.put_entry(entry(i), kType + 16 * i, 1, kPayload + 256 * i, payload_len);
    }

    static std::uint64_t entry(std::uint32_t i) { return kEntries + 32 * i; }
    static char digit(std::uint32_t i) { return static_cast<char>('0' + i % 10); }

    /* The bytes of the event of put_sound_entry with 2 bytes of payload, on CPU 0. */
    static Bytes event_bytes(std::uint32_t i, std::uint8_t sequence, std::uint8_t now) {
        const auto value = static_cast<std::uint8_t>(digit(i));

        return {32,       0, 0, 0, 30, 0, 0, 0, now, 0, 0, 0, 0, 0,   0,     0,
                sequence, 0, 0, 0, 0,  0, 0, 0, 0,   0, 0, 1, 0, 't', value, value};
    }

    Bytes sound_events(std::uint32_t count, std::uint8_t now) {
        Bytes all;

        for (std::uint32_t i = 0; i < count; i++)
            all = joined({all, event_bytes(i, static_cast<std::uint8_t>(i + 1), now)});
        return all;
    }

    /* Expects no event, no number, no counter, no wake, and a free critical section. */
    void expect_nothing_happened() {
        const kmes_statistics nothing{};

        EXPECT_EQ(world_->cpu.sequence, 0u);
        EXPECT_EQ(std::memcmp(&world_->cpu.statistics, &nothing, sizeof(nothing)), 0);
        EXPECT_EQ(world_->cpu.nested_missed, 0u);
        EXPECT_EQ(world_->current().shared_write_pos(), 0u);
        EXPECT_EQ(world_->current().buffer.frontier, 0u);
        EXPECT_EQ(world_->current().memory.data_bytes(0, 256), filled(256, 0));
        EXPECT_EQ(world_->cpu.inside, 0u);
    }

    CallerMemory memory_;
    std::unique_ptr<World> world_;
    std::vector<__u8> staging_;
    kmes_call call_{};
    __u32 emitted_ = 0;
};

// -- kmes_emit ----------------------------------------------------------------------------------

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
    EXPECT_EQ(emit(kType, 1, 0, 0), 0) << "only the bytes of the type are looked at";
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
    EXPECT_EQ(memory_.fetches, (Fetches{{kNowhere, 4}})) << "what comes behind is not looked at";
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

/* The platform's critical section, observed from outside. */
struct Section {
    World* world = nullptr;
    int depth = 0;
    int entered = 0;
    bool is_closed = false;
    bool is_calling = false;
    std::function<void()>
        on_enter;                  /* before the section is entered: another thread may be inside */
    std::function<void()> on_exit; /* after the section is left */

    void watch(World* of) {
        world = of;
        of->platform.context = this;
        of->platform.enter = [](void* context) {
            auto* self = static_cast<Section*>(context);

            self->called(self->on_enter);
            if (self->is_closed) return false;
            self->depth++;
            self->entered++;
            return true;
        };
        of->platform.exit = [](void* context) {
            auto* self = static_cast<Section*>(context);

            self->depth--;
            self->called(self->on_exit);
        };
        of->platform.clock_ns = [](void* context) -> __u64 {
            return static_cast<Section*>(context)->world->now_ns;
        };
        of->platform.queue_wake = [](void* context, kmes_buffer* buffer) {
            static_cast<Section*>(context)->world->wakes.push_back(buffer);
        };
    }

    /* Calls the function once, and does not report what it causes itself. */
    void called(std::function<void()>& function) {
        if (is_calling || !function) return;
        is_calling = true;
        std::exchange(function, nullptr)();
        is_calling = false;
    }
};

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
    EXPECT_EQ(section.entered, 2) << "to look at the capacity, and to emit";
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
TEST_F(CallTest, LookingAtTheCapacityDropsNobodysEvent) {
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

// -- kmes_emit_batch ----------------------------------------------------------------------------

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
    int looks = 0;

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
            looks += access.label == KMES_ORDER_NEED_WAKE;
        });
        ASSERT_EQ(batch(4), 0);
    }
    EXPECT_EQ(emitted_, 4u);
    EXPECT_EQ(clocks, 1);
    EXPECT_EQ(publishes, 1);
    EXPECT_EQ(looks, 1);
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

// -- A thread that moves from CPU to CPU
// -----------------------------------------------------------

/* The call uses the CPU of its thread, and the thread migrates whenever it is not pinned. */
class MovingCallTest : public CallTest {
  protected:
    void SetUp() override {
        start({.capacity_bytes = 4096});
        other_ = std::make_unique<World>(WorldSetup{.capacity_bytes = 4096});
        staging_.assign(4096, 'S');
        call_.cpu = nullptr;
        call_.pin = pin;
        call_.unpin = unpin;
        call_.staging = staging_.data();
        call_.staging_bytes = 1024;
        call_.fetch = fetch;
        call_.context = this;
    }

    static kmes_cpu* pin(void* context) {
        auto& test = *static_cast<MovingCallTest*>(context);

        EXPECT_FALSE(test.is_pinned_);
        if (++test.pins_ == test.no_producer_at_) return nullptr;
        test.is_pinned_ = true;
        return test.pins_ % 2 ? &test.world_->cpu : &test.other_->cpu;
    }

    static void unpin(void* context) {
        auto& test = *static_cast<MovingCallTest*>(context);

        EXPECT_TRUE(test.is_pinned_);
        test.is_pinned_ = false;
    }

    /* A fetch of the caller's memory can take forever, so no CPU may be held meanwhile. */
    static int fetch(void* context, void* to, const void* from, __u64 bytes) {
        auto& test = *static_cast<MovingCallTest*>(context);

        EXPECT_FALSE(test.is_pinned_);
        return CallerMemory::fetch(&test.memory_, to, from, bytes);
    }

    std::uint64_t events() const {
        EXPECT_FALSE(is_pinned_);
        return world_->cpu.statistics.events + other_->cpu.statistics.events;
    }

    std::unique_ptr<World> other_;
    bool is_pinned_ = false;
    int pins_ = 0;
    int no_producer_at_ = 0;
};

TEST_F(MovingCallTest, AnEventGoesWhereTheThreadIsWhenItIsWritten) {
    ASSERT_EQ(emit_of(100), 0);
    EXPECT_EQ(pins_, 2) << "for the capacity, and to write";
    EXPECT_EQ(world_->cpu.statistics.events, 0u);
    EXPECT_EQ(other_->cpu.statistics.events, 1u);
}

TEST_F(MovingCallTest, ACpuWithoutAProducerIsBusyAtBothTimes) {
    for (const int when : {1, 2}) {
        pins_ = 0;
        no_producer_at_ = when;
        EXPECT_EQ(emit_of(100), -EBUSY);
    }
    EXPECT_EQ(events(), 0u);
}

TEST_F(MovingCallTest, ABatchIsWrittenAtOnceAfterAllWasFetched) {
    const int count = 5;

    for (std::uint32_t i = 0; i < count; i++) put_sound_entry(i);
    other_->now_ns = 7;
    ASSERT_EQ(batch(count), 0);
    EXPECT_EQ(emitted_, 5u);
    EXPECT_EQ(pins_, count + 1);
    EXPECT_EQ(other_->cpu.statistics.events, 5u);
    EXPECT_EQ(other_->first().survivors(), sound_events(count, 7));
    EXPECT_EQ(other_->current().buffer.published, other_->current().buffer.frontier);
}

TEST_F(MovingCallTest, ABatchStopsAtItsBadEntryAndWritesThoseBefore) {
    for (std::uint32_t i = 0; i < 3; i++) put_sound_entry(i);
    memory_.put_entry(entry(2), kType, 0, kPayload, 1);
    EXPECT_EQ(batch(3), -EINVAL);
    EXPECT_EQ(emitted_, 2u);
    EXPECT_EQ(events(), 2u);
    EXPECT_EQ(batch(0), -EINVAL);
    EXPECT_EQ(batch(257), -EINVAL);
    EXPECT_EQ(batch(1, kNowhere), -EFAULT);
    EXPECT_EQ(emitted_, 0u);
    EXPECT_EQ(events(), 2u);
}

// 200 bytes of payload take 216 bytes of staging: 4 events for each part.
TEST_F(MovingCallTest, ABatchThatIsLargerThanTheStagingGoesInParts) {
    for (std::uint32_t i = 0; i < 10; i++) put_sound_entry(i, 200);
    world_->now_ns = other_->now_ns = 77;
    ASSERT_EQ(batch(10), 0);
    EXPECT_EQ(emitted_, 10u);
    EXPECT_EQ(events(), 10u);
    EXPECT_EQ(pins_, 10 + 3);
    for (const World* world : {world_.get(), other_.get()})
        EXPECT_EQ(world->cpu.buffer->published, world->cpu.buffer->frontier);
}

TEST_F(MovingCallTest, APartThatCannotBeWrittenEndsTheBatch) {
    for (std::uint32_t i = 0; i < 10; i++) put_sound_entry(i, 200);
    no_producer_at_ = 4 + 1 + 4 + 1; /* to write the second part */
    EXPECT_EQ(batch(10), -EBUSY);
    EXPECT_EQ(emitted_, 4u);
    EXPECT_EQ(events(), 4u);
}

TEST_F(MovingCallTest, TheLargestEventFitsIntoTheStagingAlone) {
    call_.staging_bytes = call_.max_event_bytes = 1024;
    memory_.put(kType, "t");
    memory_.put(kPayload, std::string(1024 - 30, 'p'));
    for (std::uint32_t i = 0; i < 3; i++)
        memory_.put_entry(entry(i), kType, 1, kPayload, 1024 - 30);
    memory_.put_entry(entry(3), kType, 1, kPayload, 1024 - 29);
    EXPECT_EQ(batch(4), -ENOSPC);
    EXPECT_EQ(emitted_, 3u);
    EXPECT_EQ(events(), 3u);
    EXPECT_EQ(staging_[1024], 'S') << "nothing beyond it is written";
}

}  // namespace
}  // namespace kmes::tests
