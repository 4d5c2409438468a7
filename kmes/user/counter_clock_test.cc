// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The clock from the counter, on a machine whose counter and clock the test controls.
#include "kmes/user/counter_clock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "kmes/user/futex.h"

namespace kmes {
namespace {

constexpr uint64_t kStart = 1'700'000'000'000'000'000;

// A machine of 2.5 ticks a nanosecond. A reading of either clock takes 10 ns.
struct Machine {
    static inline uint64_t ticks_a_second;
    static inline uint64_t counter_offset;
    static inline uint64_t passed_ns;
    static inline uint64_t realtime_offset;
    static inline uint64_t counter_readings;
    static inline uint64_t realtime_readings;
    static inline uint64_t pause_ns;  // in the next reading of the system's clock

    static void reset() {
        ticks_a_second = 2'500'000'000;
        counter_offset = 12345;
        passed_ns = 0;
        realtime_offset = kStart;
        counter_readings = 0;
        realtime_readings = 0;
        pause_ns = 0;
    }
    static void pass(uint64_t ns) { passed_ns += ns; }
    static uint64_t counter() {
        counter_readings++;
        passed_ns += 10;
        return counter_offset + static_cast<uint64_t>(static_cast<unsigned __int128>(passed_ns) *
                                                      ticks_a_second / 1'000'000'000);
    }
    static uint64_t realtime_ns() {
        realtime_readings++;
        passed_ns += 10 + pause_ns;
        pause_ns = 0;
        return realtime_offset + passed_ns;
    }
    static uint64_t truth() { return realtime_offset + passed_ns; }
};

uint64_t distance(uint64_t a, uint64_t b) {
    return a > b ? a - b : b - a;
}

class CounterClock : public ::testing::Test {
  protected:
    CounterClock() { Machine::reset(); }

    // Reads at intervals of `step_ns` until the counter is used.
    void learn(uint64_t step_ns = 300'000) {
        for (int i = 0; i < 8; i++) {
            Machine::pass(step_ns);
            clock_.now_ns();
        }
    }

    uint64_t system_readings(int readings, uint64_t step_ns) {
        const uint64_t before = Machine::realtime_readings;

        for (int i = 0; i < readings; i++) {
            Machine::pass(step_ns);
            clock_.now_ns();
        }
        return Machine::realtime_readings - before;
    }

    CounterClockOf<Machine> clock_;
};

TEST_F(CounterClock, IsTheSystemsWhileTheRateIsUnknown) {
    const uint64_t now = clock_.now_ns();

    EXPECT_EQ(now, Machine::truth() - 10) << "the counter is read once more";
    EXPECT_GE(system_readings(5, 100), 5u);
}

// The first reading of both clocks has no earlier one for comparison.
TEST_F(CounterClock, AnInterruptedFirstReadingIsNoAnchor) {
    Machine::pause_ns = 50'000;
    learn();
    for (int i = 0; i < 10'000; i++) {
        Machine::pass(100);
        ASSERT_LE(distance(clock_.now_ns(), Machine::truth()), 100u) << i;
    }
}

TEST_F(CounterClock, ReadsTheSystemsClockOnceInAWindow) {
    learn();
    EXPECT_LE(system_readings(1000, 100), 4u) << "0.1 ms";
    EXPECT_GE(system_readings(100, 1'100'000), 100u) << "each reading is the first of its window";
}

TEST_F(CounterClock, IsWithinAHundredNanosecondsOfTheSystems) {
    learn();
    for (int i = 0; i < 100'000; i++) {
        Machine::pass(static_cast<uint64_t>(i % 977));
        ASSERT_LE(distance(clock_.now_ns(), Machine::truth()), 100u) << i;
    }
}

TEST_F(CounterClock, NeverGoesBackByItself) {
    learn();
    uint64_t last = 0;

    for (int i = 0; i < 100'000; i++) {
        Machine::pass(static_cast<uint64_t>(i % 97));
        // The rate drifts, up to 100 parts in a million, and readings are interrupted.
        if (i % 1000 == 0) Machine::realtime_offset -= 50;
        if (i % 3001 == 0) Machine::pause_ns = 5'000;
        const uint64_t now = clock_.now_ns();
        ASSERT_GE(now, last) << i;
        last = now;
    }
}

TEST_F(CounterClock, FollowsStepsEitherWayWithinAWindow) {
    learn();
    for (const int64_t step :
         std::initializer_list<int64_t>{-3'600'000'000'000, 5'000'000'000, -20'000, 30'000}) {
        Machine::realtime_offset += static_cast<uint64_t>(step);
        Machine::pass(kCounterAnchorNs);
        ASSERT_LE(distance(clock_.now_ns(), Machine::truth()), 100u) << step;
        for (int i = 0; i < 100; i++) {
            Machine::pass(50'000);
            ASSERT_LE(distance(clock_.now_ns(), Machine::truth()), 1'000u) << step << " " << i;
        }
    }
}

TEST_F(CounterClock, StandsStillWhereItWasAheadByLessThanAStep) {
    learn();
    clock_.now_ns();
    Machine::realtime_offset -= kCounterStepNs / 2;
    uint64_t last = clock_.now_ns();

    for (int i = 0; i < 3000; i++) {
        Machine::pass(1'000);
        const uint64_t now = clock_.now_ns();
        ASSERT_GE(now, last);
        last = now;
    }
    EXPECT_LE(distance(last, Machine::truth()), 100u);
}

// A suspended or migrated machine: the counter jumps, the system's clock continues.
TEST_F(CounterClock, ACounterThatJumpsIsNotBelieved) {
    learn();
    for (const int64_t jump : std::initializer_list<int64_t>{int64_t{1} << 40, -(int64_t{1} << 40),
                                                             int64_t{50'000'000}}) {
        Machine::counter_offset += static_cast<uint64_t>(jump);
        for (int i = 0; i < 100; i++) {
            Machine::pass(20'000);
            ASSERT_LE(distance(clock_.now_ns(), Machine::truth()), 200u) << jump << " " << i;
        }
    }
}

TEST_F(CounterClock, LearnsAnotherRate) {
    learn();
    Machine::counter_offset = Machine::counter();
    Machine::ticks_a_second = 1'000'000'000;
    for (int i = 0; i < 10; i++) {
        Machine::pass(2'000'000);
        clock_.now_ns();
    }
    EXPECT_LE(system_readings(1000, 100), 4u);
    for (int i = 0; i < 10'000; i++) {
        Machine::pass(500);
        ASSERT_LE(distance(clock_.now_ns(), Machine::truth()), 100u);
    }
}

TEST_F(CounterClock, AStepDuringLearningIsNoRate) {
    clock_.now_ns();
    Machine::pass(300'000);
    Machine::realtime_offset += 3'600'000'000'000;
    for (int i = 0; i < 1000; i++) {
        Machine::pass(30'000);
        ASSERT_LE(distance(clock_.now_ns(), Machine::truth()), 200u) << i;
    }
}

TEST_F(CounterClock, ACounterThatStandsStillIsNotUsed) {
    Machine::ticks_a_second = 0;
    learn();
    EXPECT_GE(system_readings(100, 1'000), 100u);
    EXPECT_LE(distance(clock_.now_ns(), Machine::truth()), 100u);
}

// Counts how often a clock that three threads share was off by a step, on the test's machine. Each
// reading must be between two readings of the system's clock, except for the error of the rate. A
// busy machine only widens that range.
uint64_t wrong_readings(int readings) {
    CounterClockOf<MachineSource> clock;
    std::atomic<uint64_t> wrong{0};
    auto read = [&] {
        for (int i = 0; i < readings; i++) {
            const uint64_t before = kmes_clock_realtime_ns();
            const uint64_t now = clock.now_ns();
            const uint64_t after = kmes_clock_realtime_ns();
            if (now + kCounterStepNs < before || now > after + kCounterStepNs) wrong++;
        }
    };
    std::vector<std::thread> threads;

    for (int i = 0; i < 3; i++) threads.emplace_back(read);
    for (std::thread& thread : threads) thread.join();
    return wrong;
}

TEST(MachineCounterClock, LiesBetweenTwoReadingsOfTheSystems) {
    if (!counter_is_usable()) GTEST_SKIP() << "the counter of this machine is no clock";
    EXPECT_EQ(wrong_readings(200'000), 0u);
}

// A thread that reads while another one sets the anchor loads parts of two anchors. This is most
// frequent in the first windows of a clock, and a thread that is suspended there prolongs it.
TEST(MachineCounterClock, NeverMixesTwoAnchors) {
    if (!counter_is_usable()) GTEST_SKIP() << "the counter of this machine is no clock";
    for (int i = 0; i < 100; i++) ASSERT_EQ(wrong_readings(20'000), 0u) << "clock " << i;
}

}  // namespace
}  // namespace kmes
