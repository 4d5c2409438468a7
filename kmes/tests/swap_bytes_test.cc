// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The bytes that a swap writes to memory: boot hand-over, grow, shrink, positions, nudges and the
 * end of a producer (5.1.2, 5.1.8.3, 5.1.8.4, E3, E10, E11, E15, E19, E25). The expected bytes are
 * written by hand, for form A (docs/layouts.md). property_test.cc compares them in other forms.
 */
#include <gtest/gtest.h>

#include "kmes/tests/bytes.h"
#include "kmes/tests/world.h"

namespace kmes::tests {
namespace {

const Bytes kMagic = {0x4B, 0x4D, 0x45, 0x53, 0x52, 0x49, 0x4E, 0x47};
const Bytes kDataOffset = {0x00, 0x10};
const Bytes kCapacity256 = {0x00, 0x01};
const Bytes kCapacity512 = {0x00, 0x02};

/* An event of emit_sized(32), by hand for sequence numbers below 256. */
Bytes event_of_32(std::uint8_t sequence) {
    return {
        0x20,     0,   0,        0,
        0x1E,     0,   0,        0,  // event_size, header_size
        0xE8,     3,   0,        0,
        0,        0,   0,        0,  // timestamp 1000
        sequence, 0,   0,        0,
        0,        0,   0,        0,  // sequence
        0,        0,   0,        1,
        0,        't', sequence, sequence,  // cpu_id, origin, type_len, type, payload
    };
}

TEST(BootHandOver, GivesConsumersTheFirstGenerationWithAllThatSurvived) {
    World world({.generation = 0, .cpu_id = 0});
    for (int i = 0; i < 9; i++)
        ASSERT_EQ(world.emit_sized(32), 0);  // 288: the first is overwritten
    ASSERT_EQ(world.swap(512), 0);
    EXPECT_EQ(world.current().page(), page_of({
                                          {0, kMagic},
                                          {8, {0x01}},         // version
                                          {16, kCapacity512},  // capacity
                                          {24, kDataOffset},   // data_offset
                                          {32, {0x01}},        // generation: the first is 1
                                          {64, {0x20, 0x01}},  // write_pos: 288
                                          {72, {0x20}},        // tail_pos: 32
                                      }));
    settle_mirror();
    EXPECT_EQ(
        world.current().memory.data_bytes(0, 512),
        joined({filled(32, 0), event_of_32(2), event_of_32(3), event_of_32(4), event_of_32(5),
                event_of_32(6), event_of_32(7), event_of_32(8), event_of_32(9), filled(224, 0)}));
    ASSERT_EQ(world.emit_sized(32), 0);
    EXPECT_EQ(world.cpu.sequence, 10u) << "sequence numbers go on over the hand-over";
}

TEST(Grow, KeepsEverythingThatSurvivedAtItsPosition) {
    World world({.start_pos = 0x1F0});  // 496: the second event wraps in the old buffer
    ASSERT_EQ(world.emit_sized(32), 0);
    ASSERT_EQ(world.emit_sized(32), 0);
    ASSERT_EQ(world.swap(512), 0);
    settle_mirror();
    const Bytes first = event_of_32(1);
    const Bytes first_half(first.begin(), first.begin() + 16);
    const Bytes second_half(first.begin() + 16, first.end());
    EXPECT_EQ(world.current().memory.data_bytes(0, 512),
              joined({second_half, event_of_32(2), filled(512 - 64, 0), first_half}));
    EXPECT_EQ(world.current().page(), page_of({{0, kMagic},
                                               {8, {0x01}},
                                               {16, kCapacity512},
                                               {24, kDataOffset},
                                               {32, {0x02}},           // generation: old + 1
                                               {64, {0x30, 0x02}},     // write_pos: 560
                                               {72, {0xF0, 0x01}}}));  // tail_pos: 496
    EXPECT_EQ(world.first().page(), page_of({{0, kMagic},
                                             {8, {0x01}},
                                             {16, kCapacity256},
                                             {24, kDataOffset},
                                             {32, {0x02}},        // generation: incremented
                                             {64, {0x30, 0x02}},  // write_pos: frozen
                                             {72, {0xF0, 0x01}},
                                             {128, {0x01}}}));  // futex_counter: E3
}

/* E10: the longest suffix of whole events that fits. */
TEST(Shrink, KeepsTheLongestSuffixOfWholeEvents) {
    World world({.capacity_bytes = 512});
    for (int i = 0; i < 10; i++) ASSERT_EQ(world.emit_sized(32), 0);
    ASSERT_EQ(world.emit_sized(33), 0);  // 353 bytes; 256 takes the last 225 = 33 + 6 x 32
    ASSERT_EQ(world.swap(256), 0);
    EXPECT_EQ(world.current().page(), page_of({{0, kMagic},
                                               {8, {0x01}},
                                               {16, kCapacity256},
                                               {24, kDataOffset},
                                               {32, {0x02}},
                                               {64, {0x61, 0x01}},  // write_pos: 353
                                               {72, {0x80}}}));     // tail_pos: 128
    const Bytes last = {0x21, 0, 0, 0, 0x1E, 0, 0, 0, 0xE8, 3, 0, 0, 0,   0,  0,  0, 11,
                        0,    0, 0, 0, 0,    0, 0, 0, 0,    0, 1, 0, 't', 11, 11, 11};
    EXPECT_EQ(world.current().survivors(),
              joined({event_of_32(5), event_of_32(6), event_of_32(7), event_of_32(8),
                      event_of_32(9), event_of_32(10), last}));
}

TEST(Shrink, KeepsAnEventThatIsLargerThanHalfOfTheNewBuffer) {
    World world({.capacity_bytes = 512});
    ASSERT_EQ(world.emit_sized(40), 0);
    ASSERT_EQ(world.emit_sized(256), 0);  // half of 512, and all of 256
    ASSERT_EQ(world.swap(256), 0);
    EXPECT_EQ(world.current().shared_tail_pos(), 40u);
    EXPECT_EQ(world.current().shared_write_pos(), 296u);
    const Bytes header = {0x00, 0x01, 0, 0, 0x1E, 0, 0, 0, 0xE8, 3, 0, 0, 0, 0, 0,
                          0,    2,    0, 0, 0,    0, 0, 0, 0,    0, 0, 0, 1, 0, 't'};
    EXPECT_EQ(world.current().survivors(), joined({header, filled(226, 2)}));
    /* The next event overwrites all of it: the tail reaches the published write_pos (E8, E20). */
    ASSERT_EQ(world.emit_sized(32), 0);
    EXPECT_EQ(world.current().shared_tail_pos(), 296u);
    EXPECT_EQ(world.current().survivors(), event_of_32(3));
}

TEST(Shrink, KeepsNothingWhereTheLastEventDoesNotFit) {
    World world({.capacity_bytes = 1024});
    ASSERT_EQ(world.emit_sized(40), 0);
    ASSERT_EQ(world.emit_sized(257), 0);
    ASSERT_EQ(world.swap(256), 0);
    EXPECT_EQ(world.current().page(), page_of({{0, kMagic},
                                               {8, {0x01}},
                                               {16, kCapacity256},
                                               {24, kDataOffset},
                                               {32, {0x02}},
                                               {64, {0x29, 0x01}},     // write_pos: 297
                                               {72, {0x29, 0x01}}}));  // tail_pos: the same
    EXPECT_EQ(world.first().shared_tail_pos(), 0u) << "the old buffer keeps what it had";
}

/* E11: any positions with write_pos - tail_pos = the surviving bytes. */
TEST(SwapPositions, AreKeptOrBeginAtZeroOrAreShifted) {
    const struct {
        enum kmes_swap_positions positions;
        std::uint64_t shift;
        std::uint64_t tail;
        std::uint64_t write;
    } rows[] = {
        {KMES_SWAP_KEEP, 0, 0x10000000A0, 0x10000000E0},
        {KMES_SWAP_ZERO, 0, 0, 0x40},
        {KMES_SWAP_SHIFT, 0x7000000000000001, 0x70000010000000A1, 0x70000010000000E1},
    };
    for (const auto& row : rows) {
        World world({.start_pos = 0x10000000A0});
        ASSERT_EQ(world.emit_sized(32), 0);
        ASSERT_EQ(world.emit_sized(32), 0);
        ASSERT_EQ(world.swap(512, row.positions, row.shift), 0);
        EXPECT_EQ(world.current().shared_tail_pos(), row.tail);
        EXPECT_EQ(world.current().shared_write_pos(), row.write);
        EXPECT_EQ(world.current().survivors(), joined({event_of_32(1), event_of_32(2)}));
        /* The index of the new buffer works at its positions: a lap finds its boundaries. */
        for (int i = 0; i < 20; i++) ASSERT_EQ(world.emit_sized(32), 0);
        EXPECT_EQ(world.current().shared_tail_pos(), row.tail + 6 * 32);
        EXPECT_EQ(world.cpu.statistics.corrupt, 0u);
    }
}

/* E15, E19: generation and counter of each buffer, over three swaps and nudges. */
TEST(Generation, AndCounterMoveWithEverySwapAndNudge) {
    World world({});
    TestBuffer& first = world.first();
    ASSERT_EQ(world.swap(256), 0);
    TestBuffer& second = world.current();
    EXPECT_EQ(*first.buffer.shared.generation, 2u);
    EXPECT_EQ(*first.buffer.shared.futex_counter, 1u);
    EXPECT_EQ(*second.buffer.shared.generation, 2u) << "equal to its predecessor's: E19";
    EXPECT_EQ(*second.buffer.shared.futex_counter, 0u);

    ASSERT_EQ(kmes_buffer_nudge(&world.cpu, &first.buffer), 0);
    EXPECT_EQ(*first.buffer.shared.generation, 3u);
    EXPECT_EQ(*first.buffer.shared.futex_counter, 2u);
    EXPECT_EQ(world.wakes_of(first), 2u);
    EXPECT_EQ(kmes_buffer_nudge(&world.cpu, &second.buffer), -EINVAL) << "it is written to now";
    EXPECT_EQ(*second.buffer.shared.generation, 2u);

    ASSERT_EQ(world.swap(512), 0);
    ASSERT_EQ(world.swap(256), 0);
    EXPECT_EQ(*second.buffer.shared.generation, 3u);
    EXPECT_EQ(*world.current().buffer.shared.generation, 4u);
    EXPECT_EQ(*first.buffer.shared.generation, 3u) << "a swap does not touch older buffers";
    EXPECT_EQ(world.cpu.statistics.swaps, 3u);
    EXPECT_EQ(world.wakes_of(second), 1u);
}

/* E25: a producer that ends publishes what is pending, retires its buffer, and wakes its consumers.
 */
TEST(Retire, PublishesWhatIsPendingAndWakesWhateverNeedWakeSays) {
    World world({});
    kmes_batch batch;
    kmes_batch_begin(&world.cpu, &batch);
    ASSERT_EQ(world.batch_emit_sized(batch, 32), 0);
    ASSERT_EQ(*world.first().buffer.shared.need_wake, 0);
    ASSERT_EQ(kmes_cpu_retire(&world.cpu), 0);
    EXPECT_EQ(world.first().page(), page_of({{0, kMagic},
                                             {8, {0x01}},
                                             {16, kCapacity256},
                                             {24, kDataOffset},
                                             {32, {0x02}},      // generation + 1
                                             {64, {0x20}},      // write_pos: 32
                                             {128, {0x01}}}));  // futex_counter + 1
    EXPECT_EQ(world.wakes_of(world.first()), 1u);
    /* Again, as a nudge: E19 holds for the last buffer too. */
    ASSERT_EQ(kmes_cpu_retire(&world.cpu), 0);
    EXPECT_EQ(*world.first().buffer.shared.generation, 3u);
    EXPECT_EQ(world.wakes_of(world.first()), 2u);
}

/* E25: a producer that restarts continues the sequence numbers. */
TEST(Restart, GoesOnWithTheSequenceNumbers) {
    World world({.last_sequence = 41});
    ASSERT_EQ(world.emit_sized(32), 0);
    EXPECT_EQ(world.first().survivors(), event_of_32(42));
}

}  // namespace
}  // namespace kmes::tests
