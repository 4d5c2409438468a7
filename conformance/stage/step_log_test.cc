// SPDX-License-Identifier: MIT
#include "conformance/stage/step_log.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace kmes::conformance {
namespace {

class StepLogTest : public testing::Test {
  protected:
    std::uint64_t add(StepKind kind, int thread = 0) {
        TimelineStep step;
        step.kind = kind;
        step.thread = thread;
        log_.add(step);
        return log_.timeline().last_number();
    }

    StepLog log_{true};
};

TEST_F(StepLogTest, AStepIsTheLatestUntilItsThreadHasAnother) {
    const std::uint64_t first = add(StepKind::access, 1);
    add(StepKind::access, 2);
    add(StepKind::scheduler);
    EXPECT_TRUE(log_.is_latest(first, 1));
    const std::uint64_t second = add(StepKind::wait_begin, 1);
    EXPECT_FALSE(log_.is_latest(first, 1));
    EXPECT_TRUE(log_.is_latest(second, 1));
}

TEST_F(StepLogTest, AStepOfTheProducerIsLaterForEachThread) {
    for (const StepKind kind : {StepKind::producer, StepKind::end}) {
        const std::uint64_t first = add(StepKind::access, 1);
        const std::uint64_t second = add(StepKind::access, 2);
        add(kind);
        EXPECT_FALSE(log_.is_latest(first, 1));
        EXPECT_FALSE(log_.is_latest(second, 2));
        EXPECT_TRUE(log_.is_latest(add(StepKind::access, 1), 1));
    }
}

TEST(ThreadNumbers, ReplaceThreadIdsInAMessage) {
    ThreadNumbers numbers;
    EXPECT_EQ(numbers.of(24601), 1);
    EXPECT_EQ(numbers.of(24602), 2);
    EXPECT_EQ(numbers.of(24601), 1);
    EXPECT_EQ(numbers.put_into("thread 24602 waits for thread 24601 and thread 7 "),
              "thread 2 waits for thread 1 and thread 7 ");
}

// In a PID namespace the id of a thread can be the number of another one.
TEST(ThreadNumbers, ReplaceSmallIdsOnce) {
    ThreadNumbers numbers;
    EXPECT_EQ(numbers.of(30), 1);
    EXPECT_EQ(numbers.of(5), 2);
    EXPECT_EQ(numbers.of(2), 3);
    EXPECT_EQ(numbers.put_into("thread 5 waits for thread 30 and thread 2, not for thread 300"),
              "thread 2 waits for thread 1 and thread 3, not for thread 300");
    EXPECT_EQ(numbers.put_into("thread , thread x, thread 99999999999 and thread 5"),
              "thread , thread x, thread 99999999999 and thread 2");
}

TEST(ThreadNumbers, RememberTheLastUserOfEachCpu) {
    ThreadNumbers numbers;
    EXPECT_EQ(numbers.last_user_of(1), 0);
    numbers.note_user(1, 1);
    numbers.note_user(1, 2);
    EXPECT_EQ(numbers.last_user_of(0), 0);
    EXPECT_EQ(numbers.last_user_of(1), 2);
}

}  // namespace
}  // namespace kmes::conformance
