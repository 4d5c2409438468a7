// SPDX-License-Identifier: MIT
//
// Tests of the oracle's model of the producer. The expected bytes and figures are derived by hand
// from the specification.
#include "conformance/oracle/history.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace kmes::conformance {
namespace {

// An event of `bytes` bytes in all (at least 30), with the type "t".
EventSpec event_of(std::uint64_t bytes, char fill = 'p') {
    EventSpec spec;
    spec.type = "t";
    spec.payload.assign(bytes - 30, fill);
    return spec;
}

HistorySettings settings_of(std::uint64_t capacity, std::uint64_t start = 0) {
    HistorySettings settings;
    settings.capacity_bytes = capacity;
    settings.start_positions = {start};
    return settings;
}

TEST(EncodeEvent, PacksTheHeaderLittleEndian) {
    EventSpec spec{"ab", "xyz", 0x1122334455667788, 3, ""};
    const std::string expected(
        "\x22\x00\x00\x00"                  // event_size 34
        "\x1f\x00\x00\x00"                  // header_size 31
        "\x88\x77\x66\x55\x44\x33\x22\x11"  // timestamp
        "\x08\x07\x06\x05\x04\x03\x02\x01"  // sequence
        "\x34\x12"                          // cpu_id
        "\x03"                              // origin_class
        "\x02\x00"                          // type_len
        "ab"
        "xyz",
        34);
    EXPECT_EQ(encode_event(spec, 0x0102030405060708, 0x1234), expected);
    EXPECT_EQ(encoded_bytes(spec), 34u);
}

TEST(EncodeEvent, PutsALongerHeaderBetweenTypeAndPayload) {
    const std::string bytes = encode_event({"a", "p", 0, 0, "HH"}, 1, 0);
    EXPECT_EQ(bytes.size(), 33u);
    EXPECT_EQ(bytes.substr(0, 8), std::string("\x21\0\0\0\x20\0\0\0", 8));
    EXPECT_EQ(bytes.substr(29), "aHHp");
}

TEST(Digest, IsFnv1a) {
    EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325u);
    EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cu);
    EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8u);
}

// splitmix64 of seed 0 gives e220a8397b1dcdaf and 6e789e6aa1b965f4. Failure files depend on that.
TEST(Payload, IsWhatItsSeedGives) {
    const std::string both = "\xaf\xcd\x1d\x7b\x39\xa8\x20\xe2\xf4\x65\xb9\xa1\x6a\x9e\x78\x6e";
    for (std::size_t bytes = 0; bytes <= both.size(); ++bytes) {
        std::uint64_t seed = 0;
        std::string payload = generate_payload(seed, bytes);
        EXPECT_EQ(payload, both.substr(0, bytes));
        EXPECT_TRUE(is_generated(payload, 0));
        for (char& byte : payload) {
            byte ^= 1;
            EXPECT_FALSE(is_generated(payload, 0));
            byte ^= 1;
        }
    }
}

TEST(History, BeginsEmptyAtItsPositions) {
    HistorySettings settings = settings_of(256, 0xfffffff0);
    settings.cpus = 2;
    const History history(settings);
    const ExpectedMetadata first = history.expected_metadata(history.current_buffer(0));
    EXPECT_EQ(first.cpu_id, 0u);
    EXPECT_EQ(first.capacity, 256u);
    EXPECT_EQ(first.generation, 1u);
    EXPECT_EQ(first.write_pos, 0xfffffff0u);
    EXPECT_EQ(first.tail_pos, 0xfffffff0u);
    EXPECT_EQ(history.expected_metadata(history.current_buffer(1)).write_pos, 0u);
    EXPECT_EQ(history.expected_metadata(history.current_buffer(1)).cpu_id, 1u);
}

TEST(History, CountsSequencesAndPositions) {
    History history(settings_of(256));
    const Emitted first = history.emit(0, event_of(30));
    EXPECT_EQ(first.sequence, 1u);
    EXPECT_EQ(first.position, 0u);
    EXPECT_TRUE(first.published);
    const Emitted second = history.emit(0, event_of(40));
    EXPECT_EQ(second.sequence, 2u);
    EXPECT_EQ(second.position, 30u);
    EXPECT_EQ(history.expected_metadata(0).write_pos, 70u);
    EXPECT_EQ(history.expected_metadata(0).tail_pos, 0u);
}

TEST(History, OverwritesNothingOnAnExactFill) {
    History history(settings_of(256));
    history.emit(0, event_of(128));
    EXPECT_EQ(history.emit(0, event_of(128)).overwritten, 0u);
    EXPECT_EQ(history.expected_metadata(0).tail_pos, 0u);
}

TEST(History, WalksWholeEventsUntilTheNewOneFits) {
    History history(settings_of(256));
    history.emit(0, event_of(100));
    history.emit(0, event_of(100));
    EXPECT_EQ(history.emit(0, event_of(57)).overwritten, 1u);  // 257 - 0 > 256
    EXPECT_EQ(history.expected_metadata(0).tail_pos, 100u);
    EXPECT_EQ(history.emit(0, event_of(128)).overwritten, 1u);  // 385 - 200 = 185
    EXPECT_EQ(history.expected_metadata(0).tail_pos, 200u);
    EXPECT_EQ(history.emit(0, event_of(128)).overwritten, 1u);  // 513 - 257 = 256
    EXPECT_EQ(history.expected_metadata(0).tail_pos, 257u);
    EXPECT_EQ(history.expected_metadata(0).write_pos, 513u);
}

TEST(History, WalksOverSeveralSmallEventsForALargeOne) {
    History history(settings_of(256));
    for (int i = 0; i < 6; ++i) history.emit(0, event_of(40));
    EXPECT_EQ(history.emit(0, event_of(97)).overwritten, 3u);  // 337 - 80 = 257 is one too many
    EXPECT_EQ(history.expected_metadata(0).tail_pos, 120u);
}

TEST(History, DropsOverHalfTheCapacityAndUsesTheSequence) {
    History history(settings_of(256));
    EXPECT_EQ(history.emit(0, event_of(128)).outcome, EmitOutcome::written);
    const Emitted dropped = history.emit(0, event_of(129));
    EXPECT_EQ(dropped.outcome, EmitOutcome::dropped);
    EXPECT_EQ(dropped.sequence, 2u);
    EXPECT_EQ(history.expected_metadata(0).write_pos, 128u);
    EXPECT_EQ(history.emit(0, event_of(30)).sequence, 3u);
    EXPECT_EQ(history.drop(0), 4u);
    EXPECT_TRUE(history.find(0, 2)->dropped);
    EXPECT_EQ(history.find(0, 5), nullptr);
    EXPECT_EQ(history.find(0, 0), nullptr);
}

TEST(History, RefusesACallWithoutUsingASequence) {
    HistorySettings settings = settings_of(256);
    settings.maximum_call_event_bytes = 100;
    History history(settings);
    EXPECT_EQ(history.emit(0, event_of(129), EmitStyle::call).outcome, EmitOutcome::refused);
    EXPECT_EQ(history.emit(0, event_of(101), EmitStyle::call).outcome, EmitOutcome::refused);
    const Emitted written = history.emit(0, event_of(100), EmitStyle::call);
    EXPECT_EQ(written.outcome, EmitOutcome::written);
    EXPECT_EQ(written.sequence, 1u);
}

TEST(History, PublishesABatchAtItsEnd) {
    History history(settings_of(256));
    history.emit(0, event_of(30));
    history.batch_begin(0);
    EXPECT_FALSE(history.batch_add(0, event_of(30)).published);
    history.batch_add(0, event_of(129));  // dropped: the others stay
    history.batch_add(0, event_of(30));
    EXPECT_EQ(history.expected_metadata(0).write_pos, 30u);
    EXPECT_FALSE(history.find(0, 2)->published);
    history.set_report_bytes(77);
    history.batch_end(0);
    EXPECT_EQ(history.expected_metadata(0).write_pos, 90u);
    EXPECT_TRUE(history.find(0, 2)->published);
    EXPECT_EQ(history.find(0, 2)->published_after, 77u);
    EXPECT_EQ(history.find(0, 4)->sequence, 4u);
}

// E8: before the tail would reach the published write_pos, the written events are published.
TEST(History, PublishesWithinABatchBeforeTheTailReachesIt) {
    History history(settings_of(256));
    history.emit(0, event_of(100));
    history.batch_begin(0);
    history.batch_add(0, event_of(100));
    EXPECT_EQ(history.expected_metadata(0).write_pos, 100u);
    history.batch_add(0, event_of(100));  // overwrites event 1: the tail reaches 100
    EXPECT_EQ(history.expected_metadata(0).tail_pos, 100u);
    EXPECT_EQ(history.expected_metadata(0).write_pos, 200u);
    history.batch_end(0);
    EXPECT_EQ(history.expected_metadata(0).write_pos, 300u);
}

TEST(History, LeavesABatchUnpublishedWhileTheTailStaysBehind) {
    History history(settings_of(256));
    history.emit(0, event_of(100));
    history.emit(0, event_of(100));
    history.batch_begin(0);
    history.batch_add(0, event_of(100));  // overwrites event 1 only
    EXPECT_EQ(history.expected_metadata(0).tail_pos, 100u);
    EXPECT_EQ(history.expected_metadata(0).write_pos, 200u);
    history.batch_end(0);
}

// E16: an emission that interrupts a batch publishes all of it.
TEST(History, PublishesABatchThatIsInterrupted) {
    History history(settings_of(256));
    history.batch_begin(0);
    history.batch_add(0, event_of(30));
    history.emit(0, event_of(31));
    EXPECT_EQ(history.expected_metadata(0).write_pos, 61u);
    history.batch_add(0, event_of(30));
    EXPECT_EQ(history.expected_metadata(0).write_pos, 61u);
    history.batch_end(0);
    EXPECT_EQ(history.expected_metadata(0).write_pos, 91u);
}

TEST(History, GrowsWithTheSamePositions) {
    History history(settings_of(256, 1000));
    history.emit(0, event_of(100));
    history.emit(0, event_of(100));
    history.emit(0, event_of(100));
    const BufferIndex grown = history.swap(0, {512, PositionRule::keep, 0});
    EXPECT_EQ(history.expected_metadata(grown).tail_pos, 1100u);
    EXPECT_EQ(history.expected_metadata(grown).write_pos, 1300u);
    EXPECT_EQ(history.expected_metadata(grown).generation, 2u);
    // E19: the retired buffer shows the generation of its successor. E3: its counter advanced.
    EXPECT_EQ(history.expected_metadata(0).generation, 2u);
    EXPECT_EQ(history.expected_metadata(0).futex_counter_lowest, 1u);
    EXPECT_EQ(history.emit(0, event_of(250)).position, 1300u);
    EXPECT_EQ(history.expected_metadata(0).write_pos, 1300u);
    EXPECT_EQ(history.current_buffer(0), grown);
}

TEST(History, ShrinksToTheLongestSuffixThatFits) {
    History history(settings_of(512));
    history.emit(0, event_of(100));
    history.emit(0, event_of(40));
    history.emit(0, event_of(60));
    history.emit(0, event_of(200));
    // 200 + 60 > 256: only the last one fits, although it is over half of the new capacity.
    const BufferIndex small = history.swap(0, {256, PositionRule::tail_at, 0});
    EXPECT_EQ(history.expected_metadata(small).tail_pos, 0u);
    EXPECT_EQ(history.expected_metadata(small).write_pos, 200u);
    EXPECT_EQ(history.find_placement(small, 3), nullptr);
    ASSERT_NE(history.find_placement(small, 4), nullptr);
    const BufferIndex tiny = history.swap(0, {128, PositionRule::shift, 5});
    EXPECT_EQ(history.expected_metadata(tiny).tail_pos, 205u);
    EXPECT_EQ(history.expected_metadata(tiny).write_pos, 205u);
    EXPECT_EQ(history.expected_metadata(tiny).generation, 3u);
}

TEST(History, ShrinksWithoutLossWhereTheSurvivorsJustFit) {
    History history(settings_of(512));
    history.emit(0, event_of(56));
    history.emit(0, event_of(100));
    history.emit(0, event_of(100));
    const BufferIndex small = history.swap(0, {256, PositionRule::keep, 0});
    EXPECT_EQ(history.expected_metadata(small).tail_pos, 0u);
    EXPECT_EQ(history.expected_metadata(small).write_pos, 256u);
}

TEST(History, LetsTheTailReachThePublishedEndForASingleEvent) {
    History history(settings_of(512));
    history.emit(0, event_of(200));
    const BufferIndex small = history.swap(0, {256, PositionRule::keep, 0});
    EXPECT_EQ(history.emit(0, event_of(100)).overwritten, 1u);
    EXPECT_EQ(history.expected_metadata(small).tail_pos, 200u);
    EXPECT_EQ(history.expected_metadata(small).write_pos, 300u);
}

TEST(History, NudgesARetiredBuffer) {
    History history(settings_of(256));
    history.swap(0, {256, PositionRule::keep, 0});
    history.nudge(0);
    EXPECT_EQ(history.expected_metadata(0).generation, 3u);
    EXPECT_EQ(history.expected_metadata(0).futex_counter_lowest, 2u);
    EXPECT_EQ(history.expected_metadata(1).generation, 2u);
}

TEST(History, HandsTheBootBufferOver) {
    HistorySettings settings = settings_of(256, 500);
    settings.boot_capacity_bytes = 128;
    History history(settings);
    EXPECT_EQ(history.emit(0, event_of(65)).outcome, EmitOutcome::dropped);
    history.emit(0, event_of(60));
    history.emit(0, event_of(60));
    history.emit(0, event_of(60));
    EXPECT_THROW(history.note_attached(0), std::invalid_argument);
    EXPECT_THROW(history.swap(0, {256, PositionRule::keep, 0}), std::invalid_argument);
    const BufferIndex ring = history.hand_over(0, {256, PositionRule::keep, 0});
    EXPECT_EQ(history.expected_metadata(ring).generation, 1u);
    EXPECT_EQ(history.expected_metadata(ring).tail_pos, 560u);
    EXPECT_EQ(history.expected_metadata(ring).write_pos, 680u);
    EXPECT_EQ(history.emit(0, event_of(30)).sequence, 5u);
}

TEST(History, GoesOnWithSequencesAfterARestart) {
    HistorySettings settings = settings_of(256);
    settings.first_sequence = 1000;
    settings.first_generation = 7;
    History history(settings);
    EXPECT_EQ(history.emit(0, event_of(30)).sequence, 1000u);
    EXPECT_EQ(history.find(0, 999), nullptr);
    EXPECT_EQ(history.find(0, 1000)->sequence, 1000u);
    EXPECT_EQ(history.expected_metadata(0).generation, 7u);
}

TEST(History, BoundsTheFutexCounterByWhatItKnows) {
    History history(settings_of(256));
    history.emit(0, event_of(30));
    history.emit(0, event_of(30));
    EXPECT_EQ(history.expected_metadata(0).futex_counter_lowest, 0u);
    EXPECT_EQ(history.expected_metadata(0).futex_counter_highest, 2u);
    history.spurious_wake(0);
    EXPECT_EQ(history.expected_metadata(0).futex_counter_highest, 3u);
}

TEST(History, OverwritesAllOfABufferUnseen) {
    History history(settings_of(256, 40));
    history.emit(0, event_of(30));
    history.note_attached(0);
    history.outrun(0, 3);
    const Buffer& buffer = history.buffer(0);
    EXPECT_EQ(buffer.tail_pos, 40 + 30 + 3 * 256u);
    EXPECT_EQ(buffer.write_pos, buffer.tail_pos);
    EXPECT_EQ(history.events_of(0).size(), 7u);
    EXPECT_EQ(history.find(0, 7)->bytes, 128u);
    EXPECT_FALSE(history.find(0, 7)->payload_kept);
    const Emitted next = history.emit(0, event_of(30));
    EXPECT_EQ(next.sequence, 8u);
    EXPECT_EQ(next.position, buffer.tail_pos);
    EXPECT_EQ(next.overwritten, 0u);
    // Only later events are owed.
    history.checkpoint_idle(0, 0, 0);
    EXPECT_EQ(history.find(0, 7)->owed_by, kNever);
    EXPECT_EQ(history.find(0, 8)->owed_by, 0u);
    history.batch_begin(0);
    EXPECT_THROW(history.outrun(0, 1), std::invalid_argument);
}

TEST(History, KeepsTheNumberAloneOfVeryManyEvents) {
    constexpr std::uint64_t kMany = (std::uint64_t{1} << 31) + 5;
    History history(settings_of(256, 40));
    EXPECT_EQ(history.emit(0, event_of(30)).sequence, 1u);
    history.note_attached(0);
    for (const std::uint64_t before : {std::uint64_t{1}, 3 + kMany}) {
        history.outrun(0, kMany, kMany);
        EXPECT_EQ(history.find(0, before + 1), nullptr);
        EXPECT_EQ(history.find(0, before + kMany), nullptr);
        EXPECT_EQ(history.find(0, before + kMany + 1), nullptr);
        EXPECT_EQ(history.emit(0, event_of(30)).sequence, before + kMany + 1);
        EXPECT_EQ(history.emit(0, event_of(31)).sequence, before + kMany + 2);
        EXPECT_EQ(history.find(0, before)->sequence, before);
        EXPECT_EQ(history.find(0, before + kMany + 2)->bytes, 31u);
        EXPECT_EQ(history.find(0, before + kMany + 3), nullptr);
    }
    EXPECT_EQ(history.events_of(0).size(), 5u);
    EXPECT_EQ(history.buffer(0).tail_pos, 40 + 30 + 2 * kMany * 256 + 61);
    history.checkpoint_idle(0, 0, 0);
    EXPECT_EQ(history.find(0, 2 * kMany + 5)->owed_by, 0u);
    // The maximum number that has room.
    EXPECT_THROW(history.outrun(0, 3, 3 * (256 / 30) + 1), std::invalid_argument);
    EXPECT_THROW(history.outrun(0, ~std::uint64_t{0}, 1), std::invalid_argument);
}

TEST(History, ComparesTheDataAcrossTheWrap) {
    History history(settings_of(64, 50));
    history.emit(0, {"t", "", 1, 0, ""});  // 30 bytes at 50: wraps after 14
    std::vector<std::uint8_t> data(64, 0xee);
    const std::string bytes = encode_event({"t", "", 1, 0, ""}, 1, 0);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        data[(50 + i) % 64] = static_cast<std::uint8_t>(bytes[i]);
    }
    EXPECT_EQ(history.compare_data(0, data), "");
    data[15] ^= 1;  // the type: byte 29 of the event
    EXPECT_EQ(history.compare_data(0, data),
              "CPU 0: event 1 at position 50: its byte 29 (data offset 15) is 117, not 116");
}

TEST(History, ReleasesPayloadsOfWhatIsOverwritten) {
    History history(settings_of(256));
    history.set_kept_payload_bytes(300);
    for (int i = 0; i < 20; ++i) history.emit(0, event_of(130 - 2));
    EXPECT_FALSE(history.find(0, 1)->payload_kept);
    EXPECT_EQ(history.find(0, 1)->digest(), fnv1a(std::string(98, 'p')));
    EXPECT_TRUE(history.find(0, 19)->payload_kept);
    EXPECT_TRUE(history.find(0, 20)->payload_kept);
}

TEST(History, CallsMistakesOfTheDriverByTheirName) {
    EXPECT_THROW(History(settings_of(100)), std::invalid_argument);
    EXPECT_THROW(History(settings_of(32)), std::invalid_argument);
    History history(settings_of(256));
    EXPECT_THROW(history.emit(1, event_of(30)), std::invalid_argument);
    EXPECT_THROW(history.emit(0, EventSpec{}), std::invalid_argument);
    EXPECT_THROW(history.batch_add(0, event_of(30)), std::invalid_argument);
    EXPECT_THROW(history.batch_end(0), std::invalid_argument);
    EXPECT_THROW(history.note_draining(0), std::invalid_argument);
    EXPECT_THROW(history.nudge(5), std::invalid_argument);
    EXPECT_THROW(history.swap(0, {300, PositionRule::keep, 0}), std::invalid_argument);
}

}  // namespace
}  // namespace kmes::conformance
