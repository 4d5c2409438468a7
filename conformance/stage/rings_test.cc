// SPDX-License-Identifier: MIT
//
// Operations in whose beginning others come: Rings::set_before_operation.
#include "conformance/stage/rings.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "conformance/oracle/layout.h"

namespace kmes::conformance {
namespace {

constexpr std::uint64_t kCapacityBytes = 65536;

class BeforeAnOperation : public testing::Test {
  protected:
    BeforeAnOperation() : rings_(setup()) {
        rings_.set_before_operation([this] {
            if (comes_) std::exchange(comes_, nullptr)();
        });
    }

    static RingsSetup setup() {
        RingsSetup setup;
        setup.cpus = 1;
        setup.capacity_bytes = kCapacityBytes;
        return setup;
    }

    void reserve_in_the_next() {
        comes_ = [this] { rings_.reserve(0, rings_.make(100), Written::header); };
    }

    const Buffer& present() const {
        return rings_.history().buffer(rings_.history().present_buffer(0));
    }

    std::function<void()> comes_;
    Rings rings_;
};

TEST_F(BeforeAnOperation, AReservationIsPublishedBeforeIt) {
    rings_.swap(0, {kCapacityBytes, PositionRule::keep, 0});
    const std::function<void()> operations[] = {
        [this] { rings_.emit(0, rings_.make(70)); },
        [this] { rings_.nudge(0); },
        [this] { rings_.swap(0, {kCapacityBytes, PositionRule::keep, 0}); },
        [this] { rings_.reserve(0, rings_.make(70), Written::whole); },
    };
    std::uint64_t event_bytes = 0;
    for (const std::function<void()>& operation : operations) {
        reserve_in_the_next();
        operation();
        rings_.commit(0);
        event_bytes += 100;
        EXPECT_FALSE(rings_.is_reserved(0));
        EXPECT_GE(present().write_pos, event_bytes);
        rings_.verify();
    }
}

TEST_F(BeforeAnOperation, AnEventIsDroppedThatIsTooLargeForWhatItBecame) {
    comes_ = [this] { rings_.swap(0, {2 * kCapacityBytes, PositionRule::keep, 0}); };
    rings_.drop(0);
    EXPECT_EQ(present().capacity, 2 * kCapacityBytes);
    EXPECT_EQ(present().write_pos, 0u);
}

TEST_F(BeforeAnOperation, OneThatWasReservedBeforeIsNotPublished) {
    rings_.reserve(0, rings_.make(100), Written::whole);
    EXPECT_THROW(rings_.emit(0, rings_.make(70)), std::exception);
    EXPECT_TRUE(rings_.is_reserved(0));
}

// Events in flight, and the bytes that a reader finds where they are.
class InFlight : public testing::Test {
  protected:
    InFlight() : rings_(setup()) {
        // Every byte of the region is of an old event, and the next event wraps.
        rings_.emit_bytes(0, 2 * kCapacityBytes - 50);
    }

    static RingsSetup setup() {
        RingsSetup setup;
        setup.capacity_bytes = kCapacityBytes;
        return setup;
    }

    // By their positions, which begin here.
    std::string bytes_at(std::uint64_t position, std::uint64_t bytes) const {
        const std::uint8_t* data =
            rings_.backend().base(0) + kMetadataBytes + (position & (kCapacityBytes - 1));
        return {data, data + bytes};
    }
    std::uint64_t write_pos() const { return rings_.history().buffer(0).write_pos; }

    Rings rings_;
};

TEST_F(InFlight, AReservationIsInTheRingAsFarAsItIsWritten) {
    constexpr std::uint64_t kBytes = 331;  // the payload has an odd number of them
    for (const Written written :
         {Written::whole, Written::half, Written::header, Written::nothing}) {
        const std::uint64_t position = write_pos();
        const std::string before = bytes_at(position, kBytes);
        const EventSpec spec = rings_.make(kBytes, "a.type", 7);
        rings_.reserve(0, spec, written);
        const std::string during = bytes_at(position, kBytes);
        EXPECT_EQ(write_pos(), position);
        rings_.commit(0);
        const std::string after = bytes_at(position, kBytes);
        const std::uint64_t there =
            written_bytes(written, kBytes - spec.payload.size(), spec.payload.size());
        EXPECT_EQ(during, after.substr(0, there) + before.substr(there));
        EXPECT_NE(after, before);
        EXPECT_EQ(after.substr(kBytes - spec.payload.size()), spec.payload);
        rings_.verify();
    }
}

TEST_F(InFlight, ABatchIsInTheRingAsFarAsItIsWritten) {
    constexpr std::uint64_t kBytes = 90;
    const std::uint64_t position = write_pos();
    const std::string before = bytes_at(position, 3 * kBytes);
    std::vector<EventSpec> specs;
    for (int i = 0; i < 3; ++i) specs.push_back(rings_.make(kBytes));
    rings_.begin_batch(0, specs, {Written::half, 1});
    rings_.verify();
    const std::string during = bytes_at(position, 3 * kBytes);
    rings_.end_batch(0);
    const std::string after = bytes_at(position, 3 * kBytes);
    const std::uint64_t there = kBytes + kLeastEventBytes + (kBytes - kLeastEventBytes) / 2;
    EXPECT_EQ(during, after.substr(0, there) + before.substr(there));
    rings_.verify();
}

// E8: what the producer has to publish in the middle of a batch is whole.
TEST_F(InFlight, WhatABatchHasPublishedIsWhole) {
    std::vector<EventSpec> specs;
    for (int i = 0; i < 5; ++i) specs.push_back(rings_.make(kCapacityBytes / 2 - 100 * i));
    specs.insert(specs.begin() + 1, rings_.make(kCapacityBytes));  // dropped
    const std::uint64_t before = write_pos();
    rings_.begin_batch(0, specs, {Written::nothing, 0});
    const Buffer& buffer = rings_.history().buffer(0);
    EXPECT_GT(buffer.write_pos, before);
    EXPECT_LT(buffer.write_pos, buffer.write_frontier);
    const Placement& last = buffer.placements[buffer.published_count - 1];
    EXPECT_EQ(bytes_at(last.position, last.bytes), rings_.history().expected_bytes(0, last));
    rings_.end_batch(0);
    rings_.verify();
}

TEST_F(InFlight, ASwapTakesAPendingBatchWhole) {
    const std::vector<EventSpec> specs{rings_.make(300), rings_.make(200)};
    rings_.begin_batch(0, specs, {Written::nothing, 0});
    rings_.swap(0, {kCapacityBytes, PositionRule::keep, 0});
    rings_.verify();
}

}  // namespace
}  // namespace kmes::conformance
