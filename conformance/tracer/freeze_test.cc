// SPDX-License-Identifier: MIT
//
// Stops all threads at any moment, and checks the reported states of threads.

#include <sys/syscall.h>

#include <cerrno>
#include <csignal>

#include "conformance/tracer/proc.h"
#include "conformance/tracer/testing.h"

namespace kmes::conformance {
namespace {

using tracer_testing::kBothWays;
using tracer_testing::limit;
using tracer_testing::name_of;
using tracer_testing::options_for;
using tracer_testing::TestRun;

class FreezeTest : public testing::TestWithParam<Interception> {};
INSTANTIATE_TEST_SUITE_P(Ways, FreezeTest, kBothWays, name_of);

constexpr int kFreezes = 200;

void run_for_a_moment(TestRun& run) {
    const TimePoint deadline = Clock::now() + std::chrono::microseconds(700);
    while (!std::holds_alternative<TimedOut>(run.tracer.wait(deadline))) continue;
}

// A requested stop leaves nothing to handle: the thread can be stepped at once.
TEST_P(FreezeTest, AFrozenThreadCanBeStepped) {
    TestRun run(options_for(GetParam()));
    run.start("spin");
    for (size_t i = 0; i < run.buffers.size(); ++i) ASSERT_TRUE(run.next<Mapped>());
    run_for_a_moment(run);
    ASSERT_TRUE(run.tracer.freeze_all(limit()));
    for (int i = 0; i < 10; ++i)
        EXPECT_TRUE(run.tracer.guards().step_over(run.tracer.testee_pid())) << i;
    run.tracer.thaw_all();
}

// 8 threads compute, sleep, wait with timeouts and map memory. Each of their stops must arrive.
TEST_P(FreezeTest, EightThreads200Times) {
    TestRun run(options_for(GetParam()));
    run.start("threads");
    while (run.tracer.testee_threads().size() < 9) ASSERT_LT(run.tracer.wait(limit()).index(), 13u);
    for (int i = 0; i < kFreezes; ++i) {
        run_for_a_moment(run);
        ASSERT_TRUE(run.tracer.freeze_all(limit())) << i;
        for (const pid_t tid : run.tracer.testee_threads()) {
            const auto status = tracing::read_status(tid);
            ASSERT_TRUE(status);
            EXPECT_EQ(status->state, 't');
        }
        EXPECT_TRUE(std::holds_alternative<TimedOut>(run.tracer.wait(Clock::now())))
            << "frozen threads report nothing";
        run.tracer.thaw_all();
    }
    *run.buffers[1]->word() = 1;
    const Ended ended = run.finish();
    EXPECT_EQ(ended.kind, EndKind::kExited) << ended.text;
    EXPECT_EQ(ended.exit_status, 0);
}

// The run must end well, whichever thread was not resumed. `found`: how many were found again.
void lose_a_resume(TracerOptions options, uint64_t& found) {
    TestRun run(options);
    ASSERT_TRUE(run.start_guarded("thread-churn", 0, 1));
    run.tracer.handlers().guarded_access = [](const GuardHit&) { return GuardAnswer::kStep; };
    *run.buffers[0]->word() = 1;
    const Ended ended = run.finish();
    EXPECT_EQ(ended.kind, EndKind::kExited) << ended.text;
    EXPECT_EQ(ended.exit_status, 0);
    found = run.tracer.effects().lost_stops;
}

// The thread is resumed again from any kind of stop. (Timing selects the thread, and its process
// may end first.)
TEST_P(FreezeTest, AThreadThatWasNotLetGoIsNoHang) {
    for (const uint64_t nth : {1, 2, 3, 5, 8, 20, 50}) {
        SCOPED_TRACE(nth);
        TracerOptions options = options_for(GetParam());
        options.simulate_lost_resume = nth;
        uint64_t found = 0;
        lose_a_resume(options, found);
    }
}

// While the first thread is stopped, its process cannot end: every loss is found.
TEST_P(FreezeTest, AFirstThreadThatWasNotLetGoIsFound) {
    for (const uint64_t nth : {1, 2, 3, 5}) {
        SCOPED_TRACE(nth);
        TracerOptions options = options_for(GetParam());
        options.simulate_lost_resume = nth;
        options.lose_resume_of_leader = true;
        uint64_t found = 0;
        lose_a_resume(options, found);
        EXPECT_EQ(found, 1u);
    }
}

// Threads are born and end while they are being stopped.
TEST_P(FreezeTest, ThreadsComeAndGo) {
    TestRun run(options_for(GetParam()));
    run.start("thread-churn");
    ASSERT_TRUE(run.next<Mapped>());
    for (int i = 0; i < kFreezes; ++i) {
        run_for_a_moment(run);
        ASSERT_TRUE(run.tracer.freeze_all(limit())) << i;
        run.tracer.thaw_all();
    }
    *run.buffers[0]->word() = 1;
    EXPECT_EQ(run.finish().exit_status, 0);
}

TEST_P(FreezeTest, ALeaderThatHasLeftIsNoObstacle) {
    TestRun run(options_for(GetParam()));
    run.start("leader-leaves");
    const auto wait = run.next<FutexWait>();
    ASSERT_TRUE(wait);
    ASSERT_TRUE(run.until_asleep().all_blocked_for_good);
    ASSERT_TRUE(run.tracer.freeze_all(limit()));
    EXPECT_EQ(run.tracer.mappings().size(), 2u);
    run.tracer.thaw_all();
    ASSERT_TRUE(run.until_asleep().all_blocked_for_good);
    run.buffers[0]->wake();
    const Ended ended = run.finish();
    EXPECT_EQ(ended.exit_status, 6);
    EXPECT_EQ(ended.thread, wait->tid);
}

TEST_P(FreezeTest, InspectionTellsWhoWaitsForWhat) {
    TestRun run(options_for(GetParam()));
    *run.buffers[1]->word() = 77;
    run.start("all-asleep");
    ASSERT_TRUE(run.next<FutexWait>());
    ASSERT_TRUE(run.next<FutexWait>());
    const Inspection inspection = run.until_asleep();
    ASSERT_TRUE(inspection.all_blocked);
    ASSERT_TRUE(inspection.all_blocked_for_good);
    EXPECT_FALSE(inspection.other_processes);
    ASSERT_EQ(inspection.threads.size(), 3u);
    size_t on_words = 0;
    for (const ThreadState& thread : inspection.threads) {
        EXPECT_EQ(thread.activity, Activity::kBlocked);
        EXPECT_EQ(thread.call_number, SYS_futex);
        EXPECT_EQ(thread.limit, TimeLimit::kNone);
        for (const FutexWord& word : thread.words) {
            ++on_words;
            EXPECT_EQ(word.value_expected, word.place.buffer == 1 ? 77u : 0u);
            EXPECT_EQ(word.value_there, word.value_expected);
        }
    }
    EXPECT_EQ(on_words, 2u);  // the third sleeps in pthread_join
    run.buffers[0]->wake();
    run.buffers[1]->wake();
    EXPECT_EQ(run.finish().exit_status, 0);
}

TEST_P(FreezeTest, AThreadThatRunsIsNotBlocked) {
    TestRun run(options_for(GetParam()));
    run.start("spin");
    ASSERT_TRUE(run.next<Mapped>());
    ASSERT_TRUE(run.next<Mapped>());
    (void)run.tracer.wait(Clock::now() + std::chrono::milliseconds(5));
    const Inspection inspection = run.tracer.inspect();
    ASSERT_EQ(inspection.threads.size(), 1u);
    EXPECT_EQ(inspection.threads[0].activity, Activity::kRunning);
    EXPECT_FALSE(inspection.all_blocked);
    ASSERT_TRUE(run.tracer.freeze_all(limit()));
    EXPECT_EQ(run.tracer.inspect().threads[0].activity, Activity::kHeld);
    run.tracer.thaw_all();
}

// SIGSTOP from outside stops the testee as without a tracer, and it can be frozen in that state.
TEST_P(FreezeTest, AStoppedTesteeGoesOnWithSigcont) {
    TestRun run(options_for(GetParam()));
    run.start("sleep");
    ASSERT_TRUE(run.next<FutexWait>());
    ASSERT_TRUE(run.until_asleep().all_blocked_for_good);
    const pid_t pid = run.tracer.testee_pid();
    ASSERT_EQ(kill(pid, SIGSTOP), 0);
    const TimePoint deadline = limit();
    while (run.tracer.inspect().threads.at(0).activity != Activity::kHeld &&
           Clock::now() < deadline) {
        (void)run.tracer.wait(Clock::now() + std::chrono::milliseconds(5));
    }
    (void)run.tracer.wait(Clock::now() + std::chrono::milliseconds(20));
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(run.tracer.freeze_all(limit()));
        run.tracer.thaw_all();
        (void)run.tracer.wait(Clock::now() + std::chrono::milliseconds(5));
    }
    EXPECT_EQ(run.buffers[0]->wake(), 0) << "a stopped thread does not sleep on the word";
    ASSERT_EQ(kill(pid, SIGCONT), 0);
    const auto end = run.next<FutexWaitEnd>();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->result, -EAGAIN);
    EXPECT_EQ(run.finish().exit_status, 0);
}

}  // namespace
}  // namespace kmes::conformance
