// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What is lost between the attach and the first delivered event is counted, and nothing that was
 * gone before the attach (5.1.9). The reader finds the first number without any other effect.
 */
#include <gtest/gtest.h>

#include <utility>

#include "kmes/tests/test_reader.h"

namespace kmes::tests {
namespace {

constexpr auto kEvent = 60_b;  // four of them fit

void emit(World& world, int count) {
    for (int i = 0; i < count; i++) ASSERT_EQ(world.emit_sized(kEvent), 0);
}

/* The producer says the number of its next event in identify. */
void tell_next(World& world, std::uint64_t next_sequence) {
    world.on_identify = [&world, next_sequence](kmes_mapping* mapping) {
        world.describe_current(mapping);
        mapping->next_sequence = next_sequence;
        return 0;
    };
}

void expect_place(const Reader& reader, std::uint64_t session, std::uint64_t last_sequence) {
    const kmes_reader_place place = kmes_reader_get_place(&reader.reader);
    EXPECT_TRUE(place.is_known);
    EXPECT_EQ(place.session, session);
    EXPECT_EQ(place.last_sequence, last_sequence);
}

TEST(FirstLoss, IsCountedFromTheOldestEventAtTheAttach) {
    for (const std::uint64_t session : {0, 1}) {
        World world({.start_pos = 4096, .last_sequence = 100});
        world.session = session;
        emit(world, 6);  // 103 to 106 are left
        Reader reader(world);
        ASSERT_EQ(reader.open(), 0);
        expect_place(reader, session, 102);
        emit(world, 9);
        ASSERT_EQ(reader.next(), KMES_READ_EVENT);
        EXPECT_EQ(reader.view.sequence, 112u);
        EXPECT_EQ(reader.view.lost_before, 9u);
        EXPECT_EQ(reader.drain(), Sequences({113, 114, 115}));
        EXPECT_EQ(reader.reader.statistics.lost, 9u);
    }
}

TEST(FirstLoss, IsCountedInPlaceAndInABulk) {
    World world({});
    Reader in_place(world), in_bulk(world);
    ASSERT_EQ(in_place.open(), 0);
    ASSERT_EQ(in_bulk.open(), 0);
    emit(world, 10);
    ASSERT_EQ(kmes_reader_peek(&in_place.reader, &in_place.view), KMES_READ_EVENT);
    EXPECT_EQ(in_place.view.lost_before, 6u);
    EXPECT_TRUE(kmes_reader_release(&in_place.reader));
    EXPECT_EQ(in_place.reader.statistics.lost, 6u);
    kmes_bulk bulk;
    ASSERT_EQ(kmes_reader_bulk(&in_bulk.reader, in_bulk.room, 256_b, &bulk, nullptr),
              KMES_READ_EVENT);
    ASSERT_TRUE(kmes_bulk_next(&in_bulk.reader, &bulk, &in_bulk.view));
    EXPECT_EQ(in_bulk.view.lost_before, 6u);
    EXPECT_EQ(in_bulk.reader.statistics.lost, 6u);
}

TEST(FirstLoss, IsCountedAfterAPlaceFromBeforeTheFirstEvent) {
    World world({});
    Reader early(world);
    ASSERT_EQ(early.open(), 0);
    Reader late(world);
    late.config.place = kmes_reader_get_place(&early.reader);
    emit(world, 10);
    ASSERT_EQ(late.open(), 0);
    EXPECT_EQ(late.drain(), Sequences({7, 8, 9, 10}));
    EXPECT_EQ(late.reader.statistics.lost, 6u);
}

// A ring of a kernel that was never written begins with event 1. Nothing says so for another ring.
TEST(FirstLoss, IsCountedInAnEmptyRingOnlyIfItsNextNumberIsKnown) {
    const struct {
        WorldSetup setup;
        std::uint64_t session;
        bool is_known;
    } rows[] = {
        {{}, 0, true},
        {{}, 1, false},  // a process may have resumed another one
        {{.start_pos = 1}, 0, false},
        {{.start_pos = 1ull << 63}, 0, false},
        {{.generation = 2}, 0, false},
        {{.generation = 0}, 0, false},
    };
    for (const auto& row : rows) {
        World world(row.setup);
        world.session = row.session;
        Reader reader(world);
        ASSERT_EQ(reader.open(), 0);
        EXPECT_EQ(kmes_reader_get_place(&reader.reader).is_known, row.is_known);
        emit(world, 10);
        EXPECT_EQ(reader.drain().size(), 4u);
        EXPECT_EQ(reader.reader.statistics.lost, row.is_known ? 6u : 0u);
    }
}

TEST(FirstLoss, IsCountedFromTheNumberThatTheProducerTells) {
    for (const std::uint64_t session : {0, 1}) {
        World world({.last_sequence = 100});
        world.session = session;
        Reader reader(world);
        tell_next(world, 101);
        ASSERT_EQ(reader.open(), 0);
        expect_place(reader, session, 100);
        emit(world, 10);
        EXPECT_EQ(reader.drain(), Sequences({107, 108, 109, 110}));
        EXPECT_EQ(reader.reader.statistics.lost, 6u);
    }
}

// The oldest event comes before the next one, or what is between has been lost since the attach.
TEST(FirstLoss, TakesTheEarlierOfTheTwoNumbers) {
    for (const auto& [next, last] :
         {std::pair{107u, 102u}, {104u, 102u}, {103u, 102u}, {102u, 101u}, {101u, 100u}}) {
        World world({.last_sequence = 100});
        emit(world, 6);
        Reader reader(world);
        tell_next(world, next);
        ASSERT_EQ(reader.open(), 0);
        expect_place(reader, 0, last);
        EXPECT_EQ(reader.drain(), Sequences({103, 104, 105, 106}));
        EXPECT_EQ(reader.reader.statistics.lost, 102u - last);
    }
}

TEST(FirstLoss, TakesNoNumberOfAnIdentifyThatKnowsNone) {
    World world({.start_pos = 4096});
    world.on_identify = [&world](kmes_mapping* mapping) {
        kmes_mapping now;
        world.describe_current(&now);
        mapping->device = now.device;
        mapping->inode = now.inode;
        mapping->session = now.session;
        return 0;
    };
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    EXPECT_FALSE(kmes_reader_get_place(&reader.reader).is_known);
}

// A place, or another session, is known whatever the empty ring says.
TEST(FirstLoss, IsCountedAfterAnEmptyRingWithoutANumber) {
    World world({}), next({});
    world.session = 1;
    next.session = 2;
    Reader reader(world), with_place(world), of_another(world);
    with_place.config.place = {1, 3, true};
    of_another.config.place = {7, 3, true};
    ASSERT_EQ(reader.open(), 0);
    ASSERT_EQ(with_place.open(), 0);
    ASSERT_EQ(of_another.open(), 0);
    EXPECT_FALSE(kmes_reader_get_place(&reader.reader).is_known);
    expect_place(with_place, 1, 3);
    expect_place(of_another, 1, 0);
    emit(next, 10);
    world.on_attach = [&](kmes_mapping* mapping) {
        next.describe_current(mapping);
        mapping->inode += 1000;
        return 0;
    };
    world.on_identify = world.on_attach;
    ASSERT_EQ(kmes_cpu_retire(&world.cpu), 0);
    EXPECT_EQ(reader.drain(), Sequences({7, 8, 9, 10}));
    EXPECT_EQ(reader.reader.statistics.lost, 6u);
}

// E19: the number belongs to the buffer that identify named.
TEST(FirstLoss, TakesNoNumberOfAnotherBuffer) {
    World world({.start_pos = 4096});
    Reader reader(world);
    world.on_identify = [&world](kmes_mapping* mapping) {
        world.describe_current(mapping);
        mapping->inode += 1000;
        mapping->next_sequence = 1;
        return 0;
    };
    ASSERT_EQ(reader.open(), 0);
    EXPECT_FALSE(kmes_reader_get_place(&reader.reader).is_known);
}

// An overwrite during the open, before each access after that of the tail. What the reader cannot
// see any more counts as gone before the attach. Its position and its statistics do not change.
TEST(FirstLoss, SurvivesAnOverwriteDuringTheAttach) {
    for (const auto at : {KMES_ORDER_LOAD_WRITE_POS, KMES_ORDER_READ_DATA, KMES_ORDER_DATA_FENCE,
                          KMES_ORDER_RECHECK_TAIL}) {
        for (const int burst : {1, 4, 9}) {
            World world({.start_pos = 100});
            emit(world, 5);  // 2 to 5 are left
            Reader reader(world);
            bool is_done = false;
            {
                ScopedHook hook([&](const kmes_order_access& access) {
                    if (access.label != at || std::exchange(is_done, true)) return;
                    emit(world, burst);
                });
                ASSERT_EQ(reader.open(), 0);
            }
            EXPECT_EQ(reader.reader.read_pos, 100u + kEvent);
            EXPECT_EQ(reader.reader.statistics.laps + reader.reader.statistics.torn, 0u);
            expect_place(reader, 0, 1u + burst);
            emit(world, 2);
            EXPECT_EQ(reader.drain().size(), 4u);
            EXPECT_EQ(reader.reader.statistics.lost, 2u);
        }
    }
}

// The first read reports it, as if the open had not loaded it.
TEST(FirstLoss, LeavesCorruptContentToTheFirstRead) {
    for (const bool stops : {false, true}) {
        for (const std::uint64_t next : {0, 2}) {
            World world({});
            emit(world, 1);
            settle_mirror();
            world.first().memory.data()[0] = 0;  // event_size
            world.first().memory.mirror(world.first().memory.data(), 1);
            Reader reader(world);
            reader.config.stop_on_corrupt = stops;
            tell_next(world, next);
            ASSERT_EQ(reader.open(), 0);
            EXPECT_EQ(reader.reader.statistics.corrupt, 0u);
            EXPECT_EQ(reader.reader.read_pos, 0u);
            EXPECT_EQ(kmes_reader_get_place(&reader.reader).is_known, next != 0);
            EXPECT_EQ(reader.next(), stops ? -EBADMSG : KMES_READ_EMPTY);
            EXPECT_EQ(reader.reader.statistics.corrupt, 1u);
        }
    }
}

TEST(FirstLoss, TakesNoNumberOfAnEventThatIsLargerThanWhatIsPublished) {
    World world({.start_pos = 4096});
    emit(world, 1);
    settle_mirror();
    world.first().memory.data()[0]++;  // event_size
    world.first().memory.mirror(world.first().memory.data(), 1);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    EXPECT_FALSE(kmes_reader_get_place(&reader.reader).is_known);
}

// E7: the position never moves back, whatever the tail does.
TEST(FirstLoss, TakesTheNumberAtTheFirstTail) {
    World world({});
    emit(world, 4);
    *world.first().buffer.shared.tail_pos = kEvent;
    Reader reader(world);
    {
        ScopedHook hook([&](const kmes_order_access& access) {
            if (access.label == KMES_ORDER_RECHECK_TAIL) *world.first().buffer.shared.tail_pos = 0;
        });
        ASSERT_EQ(reader.open(), 0);
    }
    expect_place(reader, 0, 1);
}

// E26: more bytes than the capacity are impossible, and no number is taken from them.
TEST(FirstLoss, TakesNoNumberBelowAWritePosThatIsFarAhead) {
    for (const auto& [beyond, is_known] : {std::pair{0u, true}, {1u, false}}) {
        World world({});
        emit(world, 1);
        *world.first().buffer.shared.write_pos = 256_b + beyond;
        Reader reader(world);
        ASSERT_EQ(reader.open(), 0);
        EXPECT_EQ(kmes_reader_get_place(&reader.reader).is_known, is_known);
    }
}

// A kernel that follows a process may have emitted for long: the count begins with the change.
TEST(FirstLoss, IsCountedFromTheChangeToAKernel) {
    for (const std::uint64_t next : {0, 95}) {
        World world({}), kernel({.start_pos = 4096, .last_sequence = 90});
        world.session = 1;
        Reader reader(world);
        ASSERT_EQ(reader.open(), 0);
        emit(kernel, next ? 4 : 6);
        world.on_attach = [&](kmes_mapping* mapping) {
            kernel.describe_current(mapping);
            mapping->inode += 1000;
            mapping->next_sequence = next;
            return 0;
        };
        world.on_identify = world.on_attach;
        ASSERT_EQ(kmes_cpu_retire(&world.cpu), 0);
        EXPECT_EQ(reader.drain().size(), 4u);
        EXPECT_EQ(reader.reader.statistics.lost, 0u);
    }
}

TEST(FirstLoss, IsCountedForAPlaceOfAProcessBeforeAKernel) {
    World kernel({.start_pos = 4096, .last_sequence = 90});
    emit(kernel, 6);
    Reader reader(kernel);
    reader.config.place = {7, 50, true};
    ASSERT_EQ(reader.open(), 0);
    emit(kernel, 2);
    EXPECT_EQ(reader.drain(), Sequences({95, 96, 97, 98}));
    EXPECT_EQ(reader.reader.statistics.lost, 2u);
}

}  // namespace
}  // namespace kmes::tests
