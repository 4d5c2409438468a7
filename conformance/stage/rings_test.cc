// SPDX-License-Identifier: MIT
//
// Operations that the observer inserts before other operations, and events in flight.
#include "conformance/stage/rings.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/oracle/layout.h"
#include "conformance/stage/producer_steps.h"
#include "conformance/stage/step_log.h"

namespace kmes::conformance {
namespace {

constexpr std::uint64_t kCapacityBytes = 65536;

// The observer does one operation before the next operation of the test.
class BeforeAnOperation : public testing::Test, private RingsObserver {
  protected:
    BeforeAnOperation() : rings_(setup()) { rings_.set_observer(*this); }

    void before_operation() override {
        if (inserted_) std::exchange(inserted_, nullptr)();
    }
    void on_buffer(BufferIndex) override {}

    static RingsSetup setup() {
        RingsSetup setup;
        setup.cpus = 1;
        setup.capacity_bytes = kCapacityBytes;
        return setup;
    }

    void reserve_before_the_next() {
        inserted_ = [this] {
            rings_.emissions().reserve(0, rings_.events().make(100), Written::header);
        };
    }

    const Buffer& current() const {
        return rings_.history().buffer(rings_.history().current_buffer(0));
    }

    std::function<void()> inserted_;
    Rings rings_;
};

TEST_F(BeforeAnOperation, AReservationIsPublishedFirst) {
    rings_.swap(0, {kCapacityBytes, PositionRule::keep, 0});
    const std::function<void()> operations[] = {
        [this] { rings_.emit(0, rings_.events().make(70)); },
        [this] { rings_.nudge(0); },
        [this] { rings_.swap(0, {kCapacityBytes, PositionRule::keep, 0}); },
        [this] { rings_.emissions().reserve(0, rings_.events().make(70), Written::whole); },
    };
    std::uint64_t event_bytes = 0;
    for (const std::function<void()>& operation : operations) {
        reserve_before_the_next();
        operation();
        rings_.emissions().commit(0);
        event_bytes += 100;
        EXPECT_FALSE(rings_.emissions().is_reserved(0));
        EXPECT_GE(current().write_pos, event_bytes);
        rings_.verify();
    }
}

TEST_F(BeforeAnOperation, ADropUsesTheNewCapacity) {
    inserted_ = [this] { rings_.swap(0, {2 * kCapacityBytes, PositionRule::keep, 0}); };
    rings_.drop(0);
    EXPECT_EQ(current().capacity, 2 * kCapacityBytes);
    EXPECT_EQ(current().write_pos, 0u);
}

TEST_F(BeforeAnOperation, AnEarlierReservationIsNotPublished) {
    rings_.emissions().reserve(0, rings_.events().make(100), Written::whole);
    EXPECT_THROW(rings_.emit(0, rings_.events().make(70)), std::exception);
    EXPECT_TRUE(rings_.emissions().is_reserved(0));
}

class BufferObserver : public RingsObserver {
  public:
    void before_operation() override {}
    void on_buffer(BufferIndex buffer) override { buffers.push_back(buffer); }
    std::vector<BufferIndex> buffers;
};

TEST(RingsObserver, LearnsOfExistingAndOfNewBuffers) {
    RingsSetup setup;
    setup.cpus = 2;
    setup.capacity_bytes = kCapacityBytes;
    Rings rings(setup);
    BufferObserver observer;
    rings.set_observer(observer);
    EXPECT_EQ(observer.buffers, (std::vector<BufferIndex>{0, 1}));
    rings.swap(1, {kCapacityBytes, PositionRule::keep, 0});
    EXPECT_EQ(observer.buffers, (std::vector<BufferIndex>{0, 1, 2}));
    BufferObserver second;
    EXPECT_THROW(rings.set_observer(second), SuiteError);
}

TEST(SwapAsPublished, WakesAndCountsOnlyIfNeedWakeIsSet) {
    for (const std::uint8_t asked : {0, 1}) {
        RingsSetup setup;
        setup.cpus = 1;
        setup.capacity_bytes = kCapacityBytes;
        Rings rings(setup);
        rings.emit(0, rings.events().make(100));
        const BufferIndex old_buffer = rings.history().current_buffer(0);
        const std::uint32_t counter = rings.counters().of(old_buffer);
        rings.forged().put_need_wake(old_buffer, asked, "the consumer asks");
        rings.swap_as_published(0, {kCapacityBytes, PositionRule::keep, 0});
        EXPECT_EQ(rings.counters().of(old_buffer), counter + asked);
        EXPECT_EQ(rings.backend().wakes(), asked);
        EXPECT_NE(rings.history().current_buffer(0), old_buffer);
        EXPECT_NO_THROW(rings.verify());
        std::uint32_t in_the_page = 0;
        std::memcpy(&in_the_page, rings.backend().base(old_buffer) + kFutexCounterOffset,
                    sizeof in_the_page);
        EXPECT_EQ(in_the_page, counter + asked);
        rings.forged().put_need_wake(rings.history().current_buffer(0), 1, "the consumer asks");
        rings.emit(0, rings.events().make(100));
        EXPECT_EQ(rings.backend().wakes(), asked + 1u) << "later operations wake";
    }
}

// 5.1.7 step 6: room is made when the event begins, and not when it is published.
TEST(ProducerStepsOfRings, AReservationSaysWhichEventsItOverwrites) {
    StepLog log(true);
    ProducerSteps steps(log);
    RingsSetup setup;
    setup.capacity_bytes = kCapacityBytes;
    Rings rings(setup, nullptr, &steps);
    log.watch(rings, [](BufferId id) { return std::optional<BufferIndex>(id); });
    for (int i = 0; i < 3; ++i) rings.emit(0, rings.events().make(kCapacityBytes / 4));
    rings.emissions().reserve(0, rings.events().make(kCapacityBytes / 2), Written::header);
    EXPECT_EQ(log.timeline().last().text,
              "begins an event of 32768 bytes at position 49152 and does not publish it yet; the "
              "header of the event is written and its payload is not; tail_pos moves over event "
              "1");
    rings.emissions().commit(0);
    EXPECT_EQ(log.timeline().last().text,
              "publishes event 4, begun earlier; need_wake is 0: no wake");
    rings.emissions().reserve(0, rings.events().make(100), Written::whole);
    EXPECT_EQ(log.timeline().last().text,
              "begins an event of 100 bytes at position 81920 and does not publish it yet; "
              "tail_pos moves over event 2");
}

// Events in flight, and the bytes that a reader loads at their positions.
class InFlight : public testing::Test {
  protected:
    InFlight() : rings_(setup()) {
        // Every byte of the region belongs to an old event, and the next event wraps.
        rings_.emit_bytes(0, 2 * kCapacityBytes - 50);
    }

    static RingsSetup setup() {
        RingsSetup setup;
        setup.capacity_bytes = kCapacityBytes;
        return setup;
    }

    // Returns bytes of the data region from this position on.
    std::string bytes_at(std::uint64_t position, std::uint64_t bytes) const {
        const std::uint8_t* data =
            rings_.backend().base(0) + kMetadataBytes + (position & (kCapacityBytes - 1));
        return {data, data + bytes};
    }
    std::uint64_t write_pos() const { return rings_.history().buffer(0).write_pos; }

    Rings rings_;
};

TEST_F(InFlight, TheRingHasTheWrittenPartOfAReservation) {
    constexpr std::uint64_t kBytes = 331;  // the payload has an odd number of them
    for (const Written written :
         {Written::whole, Written::half, Written::header, Written::nothing}) {
        const std::uint64_t position = write_pos();
        const std::string before = bytes_at(position, kBytes);
        const EventSpec spec = rings_.events().make(kBytes, "a.type", 7);
        rings_.emissions().reserve(0, spec, written);
        const std::string during = bytes_at(position, kBytes);
        EXPECT_EQ(write_pos(), position);
        rings_.emissions().commit(0);
        const std::string after = bytes_at(position, kBytes);
        const std::uint64_t there =
            written_bytes(written, kBytes - spec.payload.size(), spec.payload.size());
        EXPECT_EQ(during, after.substr(0, there) + before.substr(there));
        EXPECT_NE(after, before);
        EXPECT_EQ(after.substr(kBytes - spec.payload.size()), spec.payload);
        rings_.verify();
    }
}

TEST_F(InFlight, TheRingHasTheWrittenPartOfABatch) {
    constexpr std::uint64_t kBytes = 90;
    const std::uint64_t position = write_pos();
    const std::string before = bytes_at(position, 3 * kBytes);
    std::vector<EventSpec> specs;
    for (int i = 0; i < 3; ++i) specs.push_back(rings_.events().make(kBytes));
    rings_.emissions().begin_batch(0, specs, {Written::half, 1});
    rings_.verify();
    const std::string during = bytes_at(position, 3 * kBytes);
    rings_.emissions().end_batch(0);
    const std::string after = bytes_at(position, 3 * kBytes);
    const std::uint64_t there = kBytes + kLeastEventBytes + (kBytes - kLeastEventBytes) / 2;
    EXPECT_EQ(during, after.substr(0, there) + before.substr(there));
    rings_.verify();
}

// E8: the producer has to publish a part of a batch early. The events of that part are whole.
TEST_F(InFlight, PublishedEventsOfABatchAreWhole) {
    std::vector<EventSpec> specs;
    for (int i = 0; i < 5; ++i) specs.push_back(rings_.events().make(kCapacityBytes / 2 - 100 * i));
    specs.insert(specs.begin() + 1, rings_.events().make(kCapacityBytes));  // dropped
    const std::uint64_t before = write_pos();
    rings_.emissions().begin_batch(0, specs, {Written::nothing, 0});
    const Buffer& buffer = rings_.history().buffer(0);
    EXPECT_GT(buffer.write_pos, before);
    EXPECT_LT(buffer.write_pos, buffer.write_frontier);
    const Placement& last = buffer.placements[buffer.published_count - 1];
    EXPECT_EQ(bytes_at(last.position, last.bytes), rings_.history().expected_bytes(0, last));
    rings_.emissions().end_batch(0);
    rings_.verify();
}

TEST_F(InFlight, ASwapCopiesAllOfAPendingBatch) {
    const std::vector<EventSpec> specs{rings_.events().make(300), rings_.events().make(200)};
    rings_.emissions().begin_batch(0, specs, {Written::nothing, 0});
    rings_.swap(0, {kCapacityBytes, PositionRule::keep, 0});
    rings_.verify();
}

}  // namespace
}  // namespace kmes::conformance
