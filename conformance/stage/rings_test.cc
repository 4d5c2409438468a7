// SPDX-License-Identifier: MIT
//
// Operations in whose beginning others come: Rings::set_before_operation.
#include "conformance/stage/rings.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <utility>

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
        comes_ = [this] { rings_.reserve(0, rings_.make(100)); };
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
        [this] { rings_.reserve(0, rings_.make(70)); },
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
    rings_.reserve(0, rings_.make(100));
    EXPECT_THROW(rings_.emit(0, rings_.make(70)), std::exception);
    EXPECT_TRUE(rings_.is_reserved(0));
}

}  // namespace
}  // namespace kmes::conformance
