// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The emit calls of a thread that moves from CPU to CPU. */
#include "kmes/call.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "kmes/tests/bytes.h"
#include "kmes/tests/call_fixture.h"
#include "kmes/tests/caller_memory.h"
#include "kmes/tests/world.h"

namespace kmes::tests {
namespace {

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
