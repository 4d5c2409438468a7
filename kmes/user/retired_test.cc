// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Retired buffers: the times at which they are nudged and dropped (E19), by a clock of the test.
#include "kmes/user/retired.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "kmes/user/test_support.h"

namespace kmes {
namespace {

BufferHandle make_buffer() {
    BufferOptions options;

    options.capacity_bytes = 4096;
    return BufferMemory::create(options);
}

uint64_t generation_of(const BufferHandle& memory) {
    return *memory->buffer()->shared.generation;
}

NudgeSchedule schedule() {
    NudgeSchedule schedule;

    schedule.first_interval_ms = 10;
    schedule.growth = 3;
    schedule.keep_ms = 1000;
    schedule.keep_count = 2;
    return schedule;
}

TEST(RetiredBuffersTest, IntervalsGrow) {
    RetiredBuffers retired(schedule());
    BufferHandle memory = make_buffer();
    std::vector<uint64_t> nudged_at;

    retired.add(0, memory, 5000);
    for (uint64_t now = 5000; now < 5900; now++) {
        if (retired.nudge_due(now)) nudged_at.push_back(now - 5000);
    }
    EXPECT_EQ((std::vector<uint64_t>{10, 40, 130, 400}), nudged_at);
    EXPECT_EQ(5u, generation_of(memory));
    EXPECT_EQ(4u, *memory->futex_word());
}

TEST(RetiredBuffersTest, BuffersAreDroppedAfterTheirTimeWithALastNudge) {
    RetiredBuffers retired(schedule());
    BufferHandle memory = make_buffer();

    retired.add(0, make_buffer(), 0);
    retired.add(0, memory, 0);
    EXPECT_EQ(2u, retired.nudge_due(999));
    EXPECT_EQ(2u, retired.size());
    EXPECT_EQ(1000u, retired.next_due_ms());
    uint64_t before = generation_of(memory);

    EXPECT_EQ(2u, retired.nudge_due(1000));
    EXPECT_EQ(before + 1, generation_of(memory));
    EXPECT_EQ(0u, retired.size());
    EXPECT_EQ(UINT64_MAX, retired.next_due_ms());
    EXPECT_EQ(1, memory.use_count());
}

TEST(RetiredBuffersTest, OldestOfACpuMakesWay) {
    RetiredBuffers retired(schedule());
    BufferHandle first = make_buffer();
    BufferHandle other_cpu = make_buffer();

    retired.add(7, other_cpu, 0);
    retired.add(1, first, 0);
    retired.add(1, make_buffer(), 1);
    EXPECT_EQ(2, first.use_count());
    retired.add(1, make_buffer(), 2);
    EXPECT_EQ(1, first.use_count());
    EXPECT_EQ(2u, generation_of(first));  // a last nudge
    EXPECT_EQ(2, other_cpu.use_count());
    EXPECT_EQ(3u, retired.size());
}

// E16: a pending wake keeps its buffer.
TEST(RetiredBuffersTest, PinnedBuffersStay) {
    RetiredBuffers retired(schedule());
    BufferHandle memory = make_buffer();

    memory->pin();
    retired.add(0, memory, 0);
    retired.nudge_due(100000);
    EXPECT_EQ(2, memory.use_count());
    memory->unpin();
    retired.nudge_due(100000);
    EXPECT_EQ(1, memory.use_count());
}

TEST(RetiredBuffersTest, NudgeAllIsAStepWithoutAClock) {
    RetiredBuffers retired(schedule());
    BufferHandle memory = make_buffer();

    retired.add(0, memory, 0);
    for (uint64_t i = 1; i <= 5; i++) {
        EXPECT_EQ(1u, retired.nudge_all());
        EXPECT_EQ(1 + i, generation_of(memory));
    }
}

TEST(RetiredBuffersTest, OddSchedulesNeitherOverflowNorRepeatWithoutEnd) {
    NudgeSchedule odd;

    odd.first_interval_ms = 0;
    odd.growth = 0;
    odd.keep_ms = UINT64_MAX;
    RetiredBuffers retired(odd);

    retired.add(0, make_buffer(), UINT64_MAX - 5);
    EXPECT_EQ(0u, retired.nudge_due(UINT64_MAX - 5));
    EXPECT_EQ(1u, retired.nudge_due(UINT64_MAX - 4));
    odd.growth = UINT64_MAX;
    odd.keep_ms = 1ull << 62;
    RetiredBuffers fast(odd);

    fast.add(0, make_buffer(), 0);
    EXPECT_EQ(1u, fast.nudge_due(1));
    EXPECT_EQ(0u, fast.nudge_due(2));
    EXPECT_EQ(1u, fast.size());
}

uint64_t test_clock_ns(void* context) {
    return *static_cast<uint64_t*>(context);
}

// The producer's own schedule, and E19: at every later swap.
TEST(RetiredBuffersTest, ProducerNudgesByItsClockAndAtEverySwap) {
    uint64_t now_ns = 0;
    ProducerOptions options = test_options();

    options.schedule_clock = {test_clock_ns, &now_ns};
    Producer producer(options);
    Attachment attachment;

    ASSERT_EQ(0, producer.start_without_registry());
    ASSERT_EQ(0, producer.attach(&attachment));
    EXPECT_EQ(0u, producer.nudge());
    ASSERT_EQ(0, producer.resize(65536));
    EXPECT_EQ(2u, generation_of(attachment.buffers[0]));
    EXPECT_EQ(0u, producer.nudge_due());
    now_ns = 10000000;
    EXPECT_EQ(1u, producer.nudge_due());
    EXPECT_EQ(3u, generation_of(attachment.buffers[0]));
    ASSERT_EQ(0, producer.resize(65536));
    EXPECT_EQ(4u, generation_of(attachment.buffers[0]));
    producer.retire();
    EXPECT_EQ(5u, generation_of(attachment.buffers[0]));
}

// Nudges have their own critical section, so an emitter does not access a retired buffer.
TEST(CpuPlatformTest, AWakeThatWokeNobodyClearsTheFlagOfTheCurrentBufferAlone) {
    CpuPlatform platform(EmitterMode::kLocked, Clock());
    BufferHandle current = make_buffer();
    BufferHandle retired = make_buffer();
    struct kmes_cpu cpu = {};
    struct kmes_platform* calls = platform.platform();

    kmes_cpu_init(&cpu, 0, current->buffer(), calls, 0);
    platform.set_cpu(&cpu);
    for (const BufferHandle& memory : {current, retired}) {
        *memory->buffer()->shared.need_wake = 1;
        ASSERT_TRUE(calls->enter(calls->context));
        calls->queue_wake(calls->context, memory->buffer());
        calls->exit(calls->context);
    }
    EXPECT_EQ(0, *current->buffer()->shared.need_wake);
    EXPECT_EQ(1u, *current->futex_word());
    EXPECT_EQ(1, *retired->buffer()->shared.need_wake);
    EXPECT_EQ(0u, *retired->futex_word());
}

}  // namespace
}  // namespace kmes
