// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Every schedule of a few scenarios. The reference reader passes all in each of its forms. A reader
 * that follows the specification literally in one point fails the scenario made for it
 * (docs/errata.md). Without such a point the literal reader passes all, so the point is the cause.
 */
#include <gtest/gtest.h>

#include "kmes/tests/consumers.h"
#include "kmes/tests/explorer.h"

namespace kmes::tests {
namespace {

void nothing(Run&) {}

void fill(Run& run) {
    for (int i = 0; i < 4; i++) run.emit(60_b);
}

Scenario emit_one() {
    return {"emit one", {}, nothing, nothing, [](Run& run) { run.emit(60_b); }};
}

Scenario emit_two() {
    return {"emit two", {}, nothing, nothing, [](Run& run) {
                run.emit(60_b);
                run.emit(40_b);
            }};
}

Scenario lap_in_part() {
    return {"lap in part", {}, nothing, fill, [](Run& run) {
                run.emit(70_b);
                run.emit(33_b);
            }};
}

Scenario lap_fully() {
    return {"lap fully", {}, nothing, fill, [](Run& run) {
                for (int i = 0; i < 5; i++) run.emit(90_b - 7_b * i);
            }};
}

/* E8: larger than the room beyond what is published. */
Scenario batch() {
    return {"batch",
            {},
            nothing,
            [](Run& run) { run.emit(100_b); },
            [](Run& run) { run.batch({60_b, 70_b, 80_b, 90_b}); }};
}

/* E8, E20: the event that survived the shrink is larger than half. The next event moves the tail
 * to the published write_pos before it is published itself. */
Scenario after_a_shrink() {
    return {"after a shrink",
            {.capacity_bytes = 1024_b},
            [](Run& run) {
                run.emit(200_b);
                run.swap(256_b);
            },
            {},
            [](Run& run) { run.emit(100_b); }};
}

Scenario grow() {
    return {"swap to a larger one",
            {},
            nothing,
            [](Run& run) { run.emit(60_b); },
            [](Run& run) {
                run.emit(50_b);
                run.swap(512_b);
                run.emit(40_b);
            }};
}

Scenario shrink() {
    return {"swap to a smaller one",
            {.capacity_bytes = 512_b},
            nothing,
            [](Run& run) {
                for (int i = 0; i < 5; i++) run.emit(90_b);
            },
            [](Run& run) {
                run.swap(256_b);
                run.emit(120_b);
            }};
}

/* E24: an event is emitted, and the buffer replaced, between two checks. */
Scenario emit_and_shrink() {
    return {"emit and swap to a smaller one",
            {.capacity_bytes = 512_b},
            nothing,
            nothing,
            [](Run& run) {
                run.emit(100_b);
                run.swap(256_b);
                run.emit(128_b);
                run.emit(128_b);
            }};
}

Scenario swap_to_zero() {
    return {"swap to positions from 0",
            {.start_pos = 100000_b},
            nothing,
            [](Run& run) { run.emit(60_b); },
            [](Run& run) {
                run.swap(512_b, KMES_SWAP_ZERO);
                run.emit(60_b);
            }};
}

Scenario two_swaps() {
    return {"two swaps",
            {},
            nothing,
            [](Run& run) { run.emit(60_b); },
            [](Run& run) {
                run.swap(512_b);
                run.swap(256_b);
                run.emit(60_b);
            }};
}

Scenario swap_and_nudge() {
    return {"swap and nudge", {}, nothing, nothing, [](Run& run) {
                run.swap(256_b);
                run.nudge_all();
                run.emit(60_b);
            }};
}

/* E19: a swap while the consumer attaches, without a nudge. */
Scenario swap_at_attach() {
    return {"swap while it attaches",
            {},
            [](Run& run) { run.emit(40_b); },
            {},
            [](Run& run) {
                run.swap(256_b);
                run.emit(60_b);
            }};
}

/* E26: not a producer's action. The ring is full of old events, without a gap at its end. */
Scenario hostile_write_pos() {
    return {"a sharer writes a write_pos far ahead",
            {},
            [](Run& run) {
                for (int i = 0; i < 4; i++) run.emit(64_b);
            },
            nothing,
            [](Run& run) { *run.world.first().buffer.shared.write_pos = 1ull << 62; }};
}

std::vector<Scenario> all_scenarios() {
    return {emit_one(),       emit_two(),       lap_in_part(),   lap_fully(),       batch(),
            after_a_shrink(), grow(),           shrink(),        emit_and_shrink(), swap_to_zero(),
            two_swaps(),      swap_and_nudge(), swap_at_attach()};
}

void expect_passes_all(const ConsumerFactory& consumer) {
    const Share share = share_of_today();
    for (const Scenario& scenario : all_scenarios()) {
        const Exploration exploration = explore(scenario, consumer, Until::kEnd, share);
        EXPECT_EQ(exploration.failed, 0u) << scenario.name << ": " << exploration.first_fault;
        EXPECT_GT(exploration.runs, 100u / share.shares) << scenario.name;
    }
}

void expect_fails(const Literal& points, const Scenario& scenario) {
    const Exploration exploration = explore(scenario, literal(points), Until::kFirstFault);
    EXPECT_GT(exploration.failed, 0u) << scenario.name;
    testing::Test::RecordProperty("fault", exploration.first_fault);
}

TEST(Interleaving, NeverMisleadsTheReferenceReaderThatCopies) {
    expect_passes_all(reference_next());
}

TEST(Interleaving, NeverMisleadsTheReferenceReaderThatReadsInPlace) {
    expect_passes_all(reference_peek());
}

TEST(Interleaving, NeverMisleadsTheReferenceReaderThatReadsInBulk) {
    expect_passes_all(reference_bulk());
}

TEST(Interleaving, NeverMisleadsTheCorrectedReaderOfThisTest) {
    expect_passes_all(literal({}));
}

TEST(LiteralReader, LosesAWakeUpWithoutTheFullFenceOfE1) {
    expect_fails({.e1 = true}, emit_one());
}

TEST(LiteralReader, LosesAWakeUpWhereTheCounterIsReadLateAsE2Says) {
    expect_fails({.e2 = true}, emit_one());
}

TEST(LiteralReader, SleepsOnADeadBufferWithoutTheRecheckOfE3) {
    expect_fails({.e3 = true}, grow());
}

TEST(LiteralReader, DeliversATornEventWhereTheTailIsReReadTooEarlyAsE4Says) {
    expect_fails({.e4 = true}, lap_in_part());
}

TEST(LiteralReader, DeliversATornEventThatItProcessesInPlaceAsE6Says) {
    expect_fails({.e6 = true}, lap_in_part());
}

TEST(LiteralReader, BelievesATornLengthWithoutTheBoundsOfE7) {
    expect_fails({.e7 = true}, lap_fully());
}

TEST(LiteralReader, NeverSeesTheChangeOfAGenerationThatItCachesAsE9Says) {
    expect_fails({.e9 = true}, grow());
}

TEST(LiteralReader, LosesEventsThatItDoesNotDrainBeforeAShrinkAsE10Says) {
    expect_fails({.e10 = true}, shrink());
}

TEST(LiteralReader, LosesEventsThatAreNotWhereItAssumesAsE11Says) {
    expect_fails({.e11 = true}, swap_to_zero());
}

TEST(LiteralReader, MissesAGenerationThatMovedByTwoAsE15Says) {
    expect_fails({.e15 = true}, swap_and_nudge());
}

TEST(LiteralReader, RemembersTheGenerationOfADeadBufferWithoutTheCheckOfE19) {
    expect_fails({.e19 = true}, swap_at_attach());
}

TEST(LiteralReader, ReadsWhatIsNotPublishedWithoutTheLoadOfE20) {
    expect_fails({.e20 = true}, after_a_shrink());
}

TEST(LiteralReader, DeliversTwiceAfterADoubleSwitchAsE21Says) {
    expect_fails({.e21 = true}, two_swaps());
}

TEST(LiteralReader, LosesWhatWasWrittenBeforeTheChangeThatItSawAsE24Says) {
    expect_fails({.e24 = true}, emit_and_shrink());
}

TEST(LiteralReader, WalksRoundTheOldEventsWithoutTheBoundOfE26) {
    expect_fails({.e26 = true}, hostile_write_pos());
    const Exploration exploration = explore(hostile_write_pos(), literal({}));
    EXPECT_EQ(exploration.failed, 0u) << exploration.first_fault;
}

}  // namespace
}  // namespace kmes::tests
