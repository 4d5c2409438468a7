// SPDX-License-Identifier: MIT
//
// A limit that counts only usable time. It ends by itself, but not while the caller was stopped,
// nor while the awaited threads are ready to run without a processor.
#include "conformance/tracer/patience.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace kmes::conformance {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTurn{2};

// Returns the time until the wait is over.
Clock::duration wait_out(Patience& patience, const std::vector<pid_t>& tids) {
    const TimePoint begin = Clock::now();
    while (!patience.is_over(tids)) std::this_thread::sleep_for(kTurn);
    return Clock::now() - begin;
}

TEST(Patience, EndsByItself) {
    constexpr milliseconds kLimit{300};
    Patience patience(kLimit);
    EXPECT_GE(wait_out(patience, {}), kLimit);
}

TEST(Patience, ANewBeginningIsAWholeLimit) {
    constexpr milliseconds kLimit{300};
    Patience patience(kLimit);
    wait_out(patience, {});
    patience.restart();
    EXPECT_FALSE(patience.is_over({}));
    EXPECT_GE(wait_out(patience, {}), kLimit - kTurn);
}

TEST(Patience, TimeInWhichTheRunnerStoodStillIsNotCounted) {
    constexpr milliseconds kLimit{1000};
    constexpr milliseconds kStandstill{3000};
    Patience patience(kLimit);
    EXPECT_FALSE(patience.is_over({}));
    std::this_thread::sleep_for(kStandstill);
    EXPECT_FALSE(patience.is_over({}));
    wait_out(patience, {});
}

// Threads on one processor that are always ready to run.
class Crowd {
  public:
    Crowd() {
        cpu_set_t allowed;
        sched_getaffinity(0, sizeof allowed, &allowed);
        int processor = 0;
        while (!CPU_ISSET(processor, &allowed)) ++processor;
        CPU_ZERO(&one_);
        CPU_SET(processor, &one_);
    }
    // The calling thread joins them, with the lowest priority.
    void join() {
        sched_setaffinity(0, sizeof one_, &one_);
        const sched_param lowest{};
        sched_setscheduler(0, SCHED_IDLE, &lowest);
    }
    ~Crowd() {
        stop_ = true;
        for (std::thread& thread : threads_) thread.join();
    }
    Crowd(const Crowd&) = delete;
    Crowd& operator=(const Crowd&) = delete;

    pid_t add(int policy) {
        std::atomic<pid_t> tid{0};
        threads_.emplace_back([this, policy, &tid] {
            sched_setaffinity(0, sizeof one_, &one_);
            const sched_param lowest{};
            sched_setscheduler(0, policy, &lowest);
            tid = static_cast<pid_t>(syscall(SYS_gettid));
            while (!stop_) continue;
        });
        while (tid == 0) std::this_thread::sleep_for(kTurn);
        return tid;
    }

  private:
    cpu_set_t one_;
    std::atomic<bool> stop_{false};
    std::vector<std::thread> threads_;
};

TEST(Patience, TimeInWhichTheOthersGotNoProcessorIsNotCounted) {
    constexpr milliseconds kLimit{500};
    Crowd crowd;
    const pid_t starving = crowd.add(SCHED_IDLE);
    for (int i = 0; i < 3; ++i) crowd.add(SCHED_OTHER);
    Patience patience(kLimit);
    EXPECT_GE(wait_out(patience, {starving}), 2 * kLimit) << "and it has an end all the same";
}

// The slices are too short to count as a stop. The wait has an end all the same: ten limits.
TEST(Patience, TimeInWhichTheRunnerGotNoProcessorIsNotCounted) {
    constexpr milliseconds kLimit{500};
    constexpr int kMostLimits = 10;
    Clock::duration taken{};
    Clock::duration had{};
    std::thread([&] {
        Crowd crowd;
        crowd.add(SCHED_OTHER);
        crowd.join();
        Patience patience(kLimit);
        const TimePoint begin = Clock::now();
        const Clock::duration had_before = processor_time_of(gettid()).had;
        // Always ready to run, as a runner that answers the stops of a testee.
        while (!patience.is_over({})) continue;
        taken = Clock::now() - begin;
        had = processor_time_of(gettid()).had - had_before;
    }).join();
    // (In its first moment the wait counts nothing.) The crowd can be without this processor, too.
    EXPECT_TRUE(had >= kLimit - 10 * kTurn || taken >= kMostLimits * kLimit)
        << "over after " << taken / milliseconds(1) << " ms, of which the thread had the processor "
        << had / milliseconds(1) << " ms";
}

}  // namespace
}  // namespace kmes::conformance
