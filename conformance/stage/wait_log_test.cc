// SPDX-License-Identifier: MIT
#include "conformance/stage/wait_log.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <optional>

#include "conformance/stage/stage_rings_testing.h"

namespace kmes::conformance {
namespace {

class AWaitLog : public ServedRingsTest {
  protected:
    AWaitLog() { log_.watch(rings_); }

    bool sleep(const FutexWait& wait) {
        const bool is_nap = log_.enter(wait);
        for (const FutexWord& word : wait.words) log_.sleep_on(wait, word);
        return is_nap;
    }
    void wake(const FutexWaitEnd& end) {
        log_.leave(end);
        log_.forget(end);
    }

    WorkClock clock_;
    WaitLog log_{buffers_, clock_, 1};
};

TEST_F(AWaitLog, KnowsTheSleepersOfEachCpu) {
    EXPECT_FALSE(sleep(wait(1)));
    EXPECT_TRUE(log_.is_waiting(kThread));
    EXPECT_TRUE(log_.asleep(1));
    EXPECT_FALSE(log_.asleep(0));
    EXPECT_TRUE(log_.sleeps_without_limit(1));
    EXPECT_EQ(log_.sleeps(1), 1u);
    EXPECT_EQ(log_.last_sleeper(1), kThread);
    EXPECT_EQ(log_.last_sleeper(0), 0);
    wake(end(0));
    EXPECT_FALSE(log_.is_waiting(kThread));
    EXPECT_FALSE(log_.asleep(1));
    EXPECT_EQ(log_.sleeps(1), 1u);
}

TEST_F(AWaitLog, KnowsASleeperUntilItsWaitIsForgotten) {
    sleep(wait(0));
    const std::optional<WaitLog::End> end_of_wait = log_.leave(end(0));
    ASSERT_TRUE(end_of_wait);
    EXPECT_FALSE(end_of_wait->had_limit);
    EXPECT_FALSE(end_of_wait->is_interrupted);
    EXPECT_TRUE(log_.is_waiting(kThread));
    log_.forget(end(0));
    EXPECT_FALSE(log_.is_waiting(kThread));
    EXPECT_FALSE(log_.leave(end(0)));
}

TEST_F(AWaitLog, IsNotAsleepWithAnOldCounter) {
    rings_.forged().put_need_wake(buffer(0), 1, "set by this test");
    sleep(wait(0));
    EXPECT_TRUE(log_.proves_idle(0));
    emit(0);
    EXPECT_FALSE(log_.asleep(0));
    EXPECT_FALSE(log_.proves_idle(0));
}

TEST_F(AWaitLog, TakesAWaitWithALimitForANap) {
    EXPECT_FALSE(log_.last_nap(kThread));
    EXPECT_TRUE(sleep(wait(0, TimeLimit::kRelative)));
    EXPECT_TRUE(log_.last_nap(kThread));
    EXPECT_EQ(log_.between_waits(), kThread);
    EXPECT_FALSE(log_.sleeps_without_limit(0));
    EXPECT_FALSE(log_.proves_idle(0));
    log_.begin_event();
    EXPECT_EQ(log_.between_waits(), 0);
}

TEST_F(AWaitLog, TakesAWaitAfterAnInterruptedOneForANap) {
    sleep(wait(0));
    const std::optional<WaitLog::End> end_of_wait = log_.leave(end(-EINTR));
    ASSERT_TRUE(end_of_wait);
    EXPECT_TRUE(end_of_wait->is_interrupted);
    log_.forget(end(-EINTR));
    EXPECT_TRUE(sleep(wait(0)));
    wake(end(0));
    EXPECT_FALSE(sleep(wait(0)));
}

TEST_F(AWaitLog, TakesTheMakerOfAMappingForAsleepWhileItWaitsElsewhere) {
    sleep(wait(1, TimeLimit::kRelative));
    EXPECT_TRUE(log_.asleep(0));
    emit(1);
    EXPECT_FALSE(log_.asleep(0));
}

TEST_F(AWaitLog, CountsRefusalsUntilTheProducerActs) {
    for (int i = 0; i < 3; ++i) {
        sleep(wait(0));
        wake(end(-EAGAIN));
    }
    EXPECT_TRUE(log_.was_refused(kThread));
    EXPECT_EQ(log_.refused_waits(), 3u);
    emit(0);
    EXPECT_EQ(log_.refused_waits(), 0u);
    sleep(wait(0));
    wake(end(0));
    EXPECT_FALSE(log_.was_refused(kThread));
}

TEST_F(AWaitLog, BeginsAnIterationAfterAWait) {
    sleep(wait(0));
    emit(0);
    const std::uint64_t operations = rings_.history().operations();
    EXPECT_LT(log_.iteration_begun(0), operations);
    wake(end(0));
    EXPECT_EQ(log_.iteration_begun(0), operations);
    EXPECT_LT(log_.iteration_begun(1), operations);
}

TEST_F(AWaitLog, NamesTheOnlySleeperIfItsWaitEndsByItself) {
    EXPECT_EQ(log_.lone_timed_wait(), nullptr);
    sleep(wait(0));
    EXPECT_EQ(log_.lone_timed_wait(), nullptr);
    wake(end(0));
    sleep(wait(0, TimeLimit::kRelative));
    ASSERT_NE(log_.lone_timed_wait(), nullptr);
    EXPECT_EQ(log_.lone_timed_wait()->wait.tid, kThread);
    sleep(wait(1, TimeLimit::kRelative, kOther));
    EXPECT_EQ(log_.lone_timed_wait(), nullptr);
    log_.forget_all();
    EXPECT_FALSE(log_.is_waiting(kOther));
}

TEST_F(AWaitLog, TakesRepeatedInterruptionsForATimer) {
    for (int i = 0; i < 3; ++i) {
        sleep(wait(0));
        EXPECT_EQ(log_.lone_timed_wait(), nullptr);
        wake(end(-EINTR));
    }
    sleep(wait(0));
    EXPECT_NE(log_.lone_timed_wait(), nullptr);
}

TEST_F(AWaitLog, IgnoresWordsOfBuffersThatAreNotServed) {
    FutexWait foreign = wait(0);
    foreign.words.front().place.buffer = 1000;
    log_.enter(foreign);
    EXPECT_FALSE(log_.sleep_on(foreign, foreign.words.front()));
    EXPECT_FALSE(log_.is_waiting(kThread));
    EXPECT_EQ(log_.all().size(), 1u);
}

}  // namespace
}  // namespace kmes::conformance
