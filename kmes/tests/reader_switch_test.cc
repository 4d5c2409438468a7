// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The reader over changes of buffers (5.1.8.3 with E9, E10, E11, E15, E19, E21, E24, E25), and over
 * content that no producer writes (E7).
 */
#include <gtest/gtest.h>

#include "kmes/tests/bytes.h"
#include "kmes/tests/test_reader.h"

namespace kmes::tests {
namespace {

// 5.1.8.3: "Events MUST NOT be lost during a generation change"; E11: at any positions.
TEST(ReaderSwitch, DeliversEverythingOnceOverASwapAtAnyPositions) {
    for (const auto positions : {KMES_SWAP_KEEP, KMES_SWAP_ZERO, KMES_SWAP_SHIFT}) {
        World world({.start_pos = 5000_b});
        Reader reader(world);
        ASSERT_EQ(reader.open(), 0);
        ASSERT_EQ(world.emit_sized(60_b), 0);
        ASSERT_EQ(reader.next(), KMES_READ_EVENT);
        ASSERT_EQ(world.emit_sized(60_b), 0);
        ASSERT_EQ(world.swap(512_b, positions, 12345), 0);
        ASSERT_EQ(world.emit_sized(60_b), 0);
        EXPECT_EQ(reader.drain(), Sequences({2, 3}));
        EXPECT_EQ(reader.reader.statistics.switches, 1u);
        EXPECT_EQ(reader.reader.statistics.lost, 0u);
        EXPECT_EQ(reader.reader.statistics.not_newer, 2u);
        EXPECT_EQ(world.detaches, 1) << "the old buffer was let go";
    }
}

// E10: events that do not fit into the new buffer are still in the old one.
TEST(ReaderSwitch, DrainsTheOldBufferBeforeItGoesToASmallerOne) {
    World world({.capacity_bytes = 512_b});
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    for (int i = 0; i < 8; i++) ASSERT_EQ(world.emit_sized(60_b), 0);
    ASSERT_EQ(world.swap(256_b), 0);
    ASSERT_EQ(world.emit_sized(60_b), 0);
    EXPECT_EQ(reader.drain(), Sequences({1, 2, 3, 4, 5, 6, 7, 8, 9}));
    EXPECT_EQ(reader.reader.statistics.lost, 0u);
}

// E15: a change is any difference; one of two swaps may be missed.
TEST(ReaderSwitch, FollowsTwoSwapsAtOnce) {
    World world({});
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    ASSERT_EQ(world.emit_sized(60_b), 0);
    ASSERT_EQ(world.swap(512_b), 0);
    ASSERT_EQ(world.emit_sized(60_b), 0);
    ASSERT_EQ(world.swap(1024_b, KMES_SWAP_ZERO), 0);
    ASSERT_EQ(kmes_buffer_nudge(&world.cpu, &world.first().buffer), 0);
    ASSERT_EQ(world.emit_sized(60_b), 0);
    EXPECT_EQ(reader.drain(), Sequences({1, 2, 3}));
    EXPECT_EQ(reader.reader.statistics.switches, 1u);
}

// E21: one last sequence number a CPU, across all buffers.
TEST(ReaderSwitch, DeliversNothingTwiceAfterABufferThatGaveNothingNew) {
    World world({});
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    ASSERT_EQ(world.emit_sized(60_b), 0);
    EXPECT_EQ(reader.drain(), Sequences({1}));
    ASSERT_EQ(world.swap(512_b), 0);
    EXPECT_EQ(reader.drain(), Sequences({}));
    ASSERT_EQ(world.swap(256_b), 0);
    EXPECT_EQ(reader.drain(), Sequences({}));
    kmes_event_view view;
    ASSERT_EQ(world.swap(512_b), 0);
    EXPECT_EQ(kmes_reader_peek(&reader.reader, &view), KMES_READ_EMPTY) << "in place too";
    ASSERT_EQ(world.swap(512_b), 0);
    kmes_bulk bulk;
    const int found = kmes_reader_bulk(&reader.reader, reader.room, 512_b, &bulk, nullptr);
    EXPECT_FALSE(found == KMES_READ_EVENT && kmes_bulk_next(&reader.reader, &bulk, &view));
    ASSERT_EQ(world.emit_sized(60_b), 0);
    EXPECT_EQ(reader.drain(), Sequences({2}));
    EXPECT_EQ(reader.reader.statistics.lost, 0u);
}

// An error of attach is returned; nothing is lost, and the next call tries again.
TEST(ReaderSwitch, CanBeTriedAgainWhenTheAttachFails) {
    World world({});
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    ASSERT_EQ(world.emit_sized(60_b), 0);
    ASSERT_EQ(world.swap(512_b), 0);
    ASSERT_EQ(world.emit_sized(60_b), 0);
    ASSERT_EQ(reader.next(), KMES_READ_EVENT);
    world.on_attach = [](kmes_mapping*) { return -ENFILE; };
    EXPECT_EQ(reader.next(), -ENFILE);
    EXPECT_EQ(reader.next(), -ENFILE);
    world.on_attach = nullptr;
    world.on_identify = [](kmes_mapping*) { return -EMFILE; };
    EXPECT_EQ(reader.next(), -EMFILE);
    world.on_identify = nullptr;
    EXPECT_EQ(reader.drain(), Sequences({2}));
    EXPECT_EQ(world.attaches - world.detaches, 3) << "one mapped, two never were";
}

// A successor that is no KMES buffer is refused like a first buffer, and the old one is kept.
TEST(ReaderSwitch, RefusesASuccessorThatIsNoBuffer) {
    World world({});
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    ASSERT_EQ(world.swap(512_b), 0);
    world.current().memory.base()[0] = 'X';
    EXPECT_EQ(reader.next(), -EPROTO);
    world.current().memory.base()[0] = 'K';
    ASSERT_EQ(world.emit_sized(60_b), 0);
    EXPECT_EQ(reader.drain(), Sequences({1}));
}

// E25: a producer that ended has no successor: the change is remembered, and handled once.
TEST(ReaderSwitch, RemembersAChangeWithoutASuccessor) {
    World world({});
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    ASSERT_EQ(world.emit_sized(60_b), 0);
    ASSERT_EQ(kmes_cpu_retire(&world.cpu), 0);
    EXPECT_EQ(reader.drain(), Sequences({1}));
    EXPECT_EQ(world.attaches, 2);
    EXPECT_EQ(reader.next(), KMES_READ_EMPTY);
    EXPECT_EQ(world.attaches, 2) << "not again at every check";
    EXPECT_EQ(world.attaches, world.detaches + 1);
    ASSERT_EQ(kmes_cpu_retire(&world.cpu), 0);  // the nudge
    EXPECT_EQ(reader.next(), KMES_READ_EMPTY);
    EXPECT_EQ(world.attaches, 3);
}

// E25: sequence numbers of two sessions have nothing in common.
TEST(ReaderSwitch, BeginsToCountAnewInAnotherSession) {
    World old_world({.start_pos = 4096, .last_sequence = 100});
    World new_world({});
    new_world.session = 2;
    Reader reader(old_world);
    ASSERT_EQ(reader.open(), 0);
    ASSERT_EQ(old_world.emit_sized(60_b), 0);
    ASSERT_EQ(reader.drain(), Sequences({101}));
    ASSERT_EQ(new_world.emit_sized(60_b), 0);
    ASSERT_EQ(kmes_cpu_retire(&old_world.cpu), 0);
    old_world.on_attach = [&](kmes_mapping* mapping) {
        new_world.describe_current(mapping);
        return 0;
    };
    old_world.on_identify = old_world.on_attach;
    EXPECT_EQ(reader.drain(), Sequences({1}));
    EXPECT_EQ(reader.reader.statistics.lost, 0u);
}

// E24: the change is noticed before the last write_pos, so write_pos is loaded again.
TEST(ReaderSwitch, LoadsWritePosAgainAfterItHasSeenTheChange) {
    World world({});
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    bool done = false;
    Sequences delivered;
    {
        ScopedHook hook([&](const kmes_order_access& access) {
            if (access.label != KMES_ORDER_LOAD_GENERATION || done) return;
            done = true;
            ASSERT_EQ(world.emit_sized(128_b), 0);
            ASSERT_EQ(world.emit_sized(60_b), 0);
            ASSERT_EQ(world.swap(256_b), 0);
            ASSERT_EQ(world.emit_sized(60_b), 0);
            ASSERT_EQ(world.emit_sized(60_b), 0);  // takes the first out of the new buffer
        });
        delivered = reader.drain();
    }
    EXPECT_EQ(delivered, Sequences({1, 2, 3, 4}));
}

// -- E7: content that no producer writes ----------------------------------------------------------

struct Nonsense {
    const char* what;
    std::uint32_t event_size, header_size;
    std::uint16_t type_len;
};

constexpr std::uint32_t kLeast = KMES_EVENT_MIN_BYTES;
constexpr std::uint32_t kSize = 60_b;  // of the event that is overwritten

const Nonsense kNonsense[] = {
    {"all zeros", 0, 0, 0},
    {"event_size 0", 0, kLeast, 1},
    {"event_size 1", 1, kLeast, 1},
    {"event_size one less than the least", kLeast - 1, kLeast, 1},
    {"event_size 2^32 - 1", 0xFFFFFFFF, kLeast, 1},
    {"event_size more than is published", kSize + 1, kLeast, 1},
    {"header_size 0", kSize, 0, 1},
    {"header_size without a type", kSize, kLeast - 1, 1},
    {"header_size more than event_size", kSize, kSize + 1, 1},
    {"header_size 2^32 - 1", kSize, 0xFFFFFFFF, 1},
    {"type_len 0", kSize, kLeast, 0},
    {"type_len beyond the header", kSize, kLeast, 2},
    {"type_len 65535", kSize, kLeast, 0xFFFF},
    {"type_len 65535 and the least header_size, less 2, modulo 2^16", kSize, 65536 + kLeast - 2,
     0xFFFF},
};

void write_nonsense(World& world, std::uint64_t pos, const Nonsense& nonsense) {
    kmes_event_header header{};
    header.event_size = nonsense.event_size;
    header.header_size = nonsense.header_size;
    header.type_len = nonsense.type_len;
    header.sequence = 1;
    std::uint8_t* at = world.first().memory.data() + (pos & (256_b - 1));
    memcpy(at, &header, sizeof(header));
    world.first().memory.mirror(at, sizeof(header));
}

TEST(ReaderOnCorruptContent, CountsItAndGoesToWritePos) {
    for (const Nonsense& nonsense : kNonsense) {
        World world({.start_pos = 250_b});
        ASSERT_EQ(world.emit_sized(60_b), 0);
        settle_mirror();
        write_nonsense(world, 250_b, nonsense);
        Reader reader(world);
        ASSERT_EQ(reader.open(), 0);
        EXPECT_EQ(reader.next(), KMES_READ_EMPTY) << nonsense.what;
        EXPECT_EQ(reader.reader.statistics.corrupt, 1u) << nonsense.what;
        ASSERT_EQ(world.emit_sized(60_b), 0);
        EXPECT_EQ(reader.drain(), Sequences({2})) << nonsense.what;
    }
}

// E26: the reader fuzzer found a call that walked 2^62 bytes of delivered events.
TEST(ReaderOnCorruptContent, DoesNotWalkOverTheSameEventsForEverBelowAWritePosThatIsFarAhead) {
    for (const std::uint64_t far : {1ull << 62, 1ull << 32, ~0ull}) {
        for (int form = 0; form < 3; form++) {
            World world({});
            for (int i = 0; i < 4; i++) ASSERT_EQ(world.emit_sized(64_b), 0);
            Reader reader(world);
            ASSERT_EQ(reader.open(), 0);
            EXPECT_EQ(reader.drain(), Sequences({1, 2, 3, 4}));
            *world.first().buffer.shared.write_pos = far;
            std::uint64_t accesses = 0;
            ScopedHook hook([&](const kmes_order_access&) {
                // A faulty reader ends here, too.
                if (++accesses == 10000) *world.first().buffer.shared.write_pos = 0;
            });
            kmes_bulk bulk;
            const int found =
                form == 0   ? reader.next()
                : form == 1 ? kmes_reader_peek(&reader.reader, &reader.view)
                            : kmes_reader_bulk(&reader.reader, reader.room, 256_b, &bulk, nullptr);
            EXPECT_EQ(found, KMES_READ_EMPTY) << form;
            EXPECT_LT(accesses, 100_b) << form;
            EXPECT_EQ(reader.reader.statistics.corrupt, 1u) << form;
            EXPECT_EQ(reader.reader.statistics.not_newer, 0u) << form;
        }
    }
}

// E26: the bound is the capacity, counted from tail_pos if the reader is behind it.
TEST(ReaderOnCorruptContent, BoundsWritePosByTheCapacityFromTheTail) {
    for (const std::uint64_t excess : {0, 1}) {
        World world({});
        for (int i = 0; i < 6; i++) ASSERT_EQ(world.emit_sized(64_b), 0);
        Reader reader(world);
        ASSERT_EQ(reader.open(), 0);
        for (int i = 0; i < 4; i++) ASSERT_EQ(world.emit_sized(64_b), 0);  // the reader is lapped
        *world.first().buffer.shared.write_pos += excess;
        EXPECT_EQ(reader.drain(), excess ? Sequences() : Sequences({7, 8, 9, 10}));
        EXPECT_EQ(reader.reader.statistics.corrupt, excess);
        EXPECT_EQ(reader.reader.statistics.laps, 1u);
    }
}

TEST(ReaderOnCorruptContent, StopsWhereItIsAskedTo) {
    for (const Nonsense& nonsense : kNonsense) {
        World world({});
        ASSERT_EQ(world.emit_sized(60_b), 0);
        settle_mirror();
        write_nonsense(world, 0, nonsense);
        Reader reader(world);
        reader.config.stop_on_corrupt = true;
        ASSERT_EQ(reader.open(), 0);
        kmes_bulk bulk;
        for (int repeat = 0; repeat < 2; repeat++) {
            EXPECT_EQ(reader.next(), -EBADMSG) << nonsense.what;
            EXPECT_EQ(kmes_reader_peek(&reader.reader, &reader.view), -EBADMSG);
            EXPECT_EQ(kmes_reader_bulk(&reader.reader, reader.room, 256_b, &bulk, nullptr),
                      -EBADMSG);
            EXPECT_EQ(kmes_reader_wait(&reader.reader, 1), -EBADMSG);
        }
        EXPECT_EQ(reader.reader.statistics.corrupt, 1u);
    }
}

// E7: an event is torn if tail_pos is greater than read_pos. No content counts as corrupt then.
TEST(ReaderOnCorruptContent, CountsItAsTornWhenTheTailHasPassed) {
    for (const Nonsense& nonsense : kNonsense) {
        World world({});
        for (int i = 0; i < 4; i++) ASSERT_EQ(world.emit_sized(60_b), 0);
        settle_mirror();
        write_nonsense(world, 0, nonsense);
        Reader reader(world);
        reader.config.stop_on_corrupt = true;
        ASSERT_EQ(reader.open(), 0);
        bool done = false;
        Sequences delivered;
        {
            ScopedHook hook([&](const kmes_order_access& access) {
                if (access.label != KMES_ORDER_DATA_FENCE || done) return;
                done = true;
                ASSERT_EQ(world.emit_sized(60_b), 0);
            });
            delivered = reader.drain();
        }
        EXPECT_EQ(delivered, Sequences({2, 3, 4, 5})) << nonsense.what;
        EXPECT_EQ(reader.reader.statistics.torn, 1u) << nonsense.what;
        EXPECT_EQ(reader.reader.statistics.corrupt, 0u) << nonsense.what;
    }
}

// A bulk ends before the corrupt content, and the next call finds it.
TEST(ReaderOnCorruptContent, KeepsTheWholeEventsInFrontOfItInABulk) {
    World world({});
    for (int i = 0; i < 3; i++) ASSERT_EQ(world.emit_sized(60_b), 0);
    settle_mirror();
    write_nonsense(world, 120_b, kNonsense[1]);
    Reader reader(world);
    ASSERT_EQ(reader.open(), 0);
    kmes_bulk bulk;
    ASSERT_EQ(kmes_reader_bulk(&reader.reader, reader.room, 256_b, &bulk, nullptr),
              KMES_READ_EVENT);
    EXPECT_TRUE(kmes_bulk_next(&reader.reader, &bulk, &reader.view));
    EXPECT_TRUE(kmes_bulk_next(&reader.reader, &bulk, &reader.view));
    EXPECT_FALSE(kmes_bulk_next(&reader.reader, &bulk, &reader.view));
    EXPECT_EQ(kmes_reader_bulk(&reader.reader, reader.room, 256_b, &bulk, nullptr),
              KMES_READ_EMPTY);
    EXPECT_EQ(reader.reader.statistics.corrupt, 1u);
}

// E7, E26: for any positions the reader stays inside of its mapping, ends every call, and never
// moves back.
TEST(ReaderOnCorruptContent, EndsTheCallWhateverThePositionsSay) {
    const std::uint64_t values[] = {0,           1,         29_b,       256_b - 1,  256_b,
                                    256_b + 1,   100000_b,  1ull << 32, 1ull << 62, 1ull << 63,
                                    ~0ull - 300, ~0ull - 1, ~0ull};
    for (const std::uint64_t write_pos : values) {
        for (const std::uint64_t tail_pos : values) {
            World world({});
            Reader reader(world);
            *world.first().buffer.shared.write_pos = write_pos;
            *world.first().buffer.shared.tail_pos = tail_pos;
            ASSERT_EQ(reader.open(), 0);
            const std::uint64_t before = reader.reader.read_pos;
            EXPECT_EQ(reader.next(), KMES_READ_EMPTY) << write_pos << " " << tail_pos;
            EXPECT_GE(reader.reader.read_pos, before);
            *world.first().buffer.shared.write_pos = ~0ull - 7;
            EXPECT_EQ(reader.next(), KMES_READ_EMPTY) << write_pos << " " << tail_pos;
            EXPECT_GE(reader.reader.read_pos, before);
        }
    }
}

}  // namespace
}  // namespace kmes::tests
