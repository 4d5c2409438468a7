// SPDX-License-Identifier: MIT
//
// The tracer's reports about futex calls on ring words: operation, value, timeout, private or
// shared (E17), and the ends of waits.

#include <linux/futex.h>
#include <sys/syscall.h>

#include <cerrno>
#include <csignal>
#include <map>

#include "conformance/tracer/testing.h"

namespace kmes::conformance {
namespace {

using tracer_testing::act_in_timed_wait;
using tracer_testing::end_before_failed;
using tracer_testing::kBothWays;
using tracer_testing::limit;
using tracer_testing::name_of;
using tracer_testing::options_for;
using tracer_testing::TestRun;

class FutexTest : public testing::TestWithParam<Interception> {};
INSTANTIATE_TEST_SUITE_P(Ways, FutexTest, kBothWays, name_of);

TEST_P(FutexTest, TellsEveryKindOfWait) {
    TestRun run(options_for(GetParam()));
    *run.buffers[0]->word() = 9;
    run.start("futex-kinds");
    std::vector<FutexWait> waits;
    std::vector<int64_t> ends;
    std::vector<FutexOther> others;
    const Ended ended = run.finish([&](const TracerEvent& event) {
        if (const auto* wait = std::get_if<FutexWait>(&event)) {
            waits.push_back(*wait);
            if (wait->call_number == SYS_futex_waitv) *run.buffers[1]->word() = 1;
        }
        if (const auto* end = std::get_if<FutexWaitEnd>(&event)) {
            EXPECT_EQ(end->wait_id, waits.back().wait_id);
            ends.push_back(end->result);
        }
        if (const auto* other = std::get_if<FutexOther>(&event)) others.push_back(*other);
    });
    EXPECT_EQ(ended.exit_status, 0);
    ASSERT_EQ(waits.size(), 5u);
    EXPECT_EQ(ends, (std::vector<int64_t>{-EAGAIN, -ETIMEDOUT, -ETIMEDOUT, -ETIMEDOUT, -EAGAIN}));
    EXPECT_EQ(waits[0].words[0].value_expected, 10u);
    EXPECT_EQ(waits[0].words[0].value_there, 9u);
    EXPECT_EQ(waits[0].words[0].place.offset_bytes, 128u);
    EXPECT_EQ(waits[0].limit, TimeLimit::kNone);
    EXPECT_EQ(waits[1].limit, TimeLimit::kRelative);
    EXPECT_EQ(waits[1].limit_ns, 3000000);
    EXPECT_EQ(waits[2].operation, FUTEX_WAIT_BITSET);
    EXPECT_EQ(waits[2].limit, TimeLimit::kAbsolute);
    EXPECT_EQ(waits[2].limit_ns, 1000000005);
    EXPECT_EQ(waits[2].bitset, 0xffffffffu);
    EXPECT_FALSE(waits[2].words[0].is_private);
    EXPECT_TRUE(waits[3].words[0].is_private);
    EXPECT_EQ(waits[4].words_in_call, 3u);
    ASSERT_EQ(waits[4].words.size(), 2u);
    EXPECT_EQ(waits[4].words[1].place.buffer, 1u);
    ASSERT_EQ(others.size(), 1u);
    EXPECT_EQ(others[0].operation, FUTEX_WAKE);
    EXPECT_EQ(others[0].value, 1u);
}

// E17: the runner's wake uses file and offset, so it never reaches a private sleeper.
TEST_P(FutexTest, APrivateSleeperIsNeverWoken) {
    TestRun run(options_for(GetParam()));
    run.start("private-sleep");
    const auto wait = run.next<FutexWait>();
    ASSERT_TRUE(wait);
    EXPECT_TRUE(wait->words[0].is_private);
    ASSERT_TRUE(run.until_asleep().all_blocked_for_good);
    EXPECT_EQ(run.buffers[0]->wake(), 0);
    const Inspection still = run.tracer.inspect();
    ASSERT_TRUE(still.all_blocked_for_good);
    ASSERT_EQ(still.threads[0].words.size(), 1u);
    EXPECT_TRUE(still.threads[0].words[0].is_private);
    EXPECT_EQ(still.threads[0].words[0].value_expected, 0u);
    EXPECT_EQ(still.threads[0].words[0].value_there, 1u);
}

// The kernel does nothing while the entry is held: the call sees a change of the word before
// release.
TEST_P(FutexTest, AHeldEntryHasNotLoadedTheWord) {
    TestRun run(options_for(GetParam()));
    run.start("sleep");
    const auto wait = run.next<FutexWait>();
    ASSERT_TRUE(wait);
    run.tracer.hold(wait->tid);
    const TracerEvent nothing = run.tracer.wait(Clock::now() + std::chrono::milliseconds(30));
    EXPECT_TRUE(std::holds_alternative<TimedOut>(nothing));
    EXPECT_EQ(run.tracer.inspect().threads[0].activity, Activity::kHeld);
    EXPECT_EQ(run.buffers[0]->wake(), 0);
    run.tracer.release(wait->tid);
    const auto end = run.next<FutexWaitEnd>();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->result, -EAGAIN);
}

// For the runner, a stop of the sleeper or a handler with SA_RESTART does not end the wait; EINTR
// does.
TEST_P(FutexTest, AnInterruptedWaitIsOneWait) {
    TestRun run(options_for(GetParam()));
    run.start("interrupted");
    const auto first = run.next<FutexWait>();
    ASSERT_TRUE(first);
    ASSERT_TRUE(run.until_asleep().all_blocked_for_good);
    ASSERT_EQ(kill(run.tracer.testee_pid(), SIGALRM), 0);
    const auto end = run.next<FutexWaitEnd>();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->wait_id, first->wait_id);
    EXPECT_EQ(end->result, -EINTR);
    const auto second = run.next<FutexWait>();
    ASSERT_TRUE(second);
    EXPECT_NE(second->wait_id, first->wait_id);
    ASSERT_TRUE(run.until_asleep().all_blocked_for_good);
    ASSERT_EQ(kill(run.tracer.testee_pid(), SIGALRM), 0);
    ASSERT_TRUE(run.until_asleep().all_blocked_for_good);
    for (int i = 0; i < 5; ++i) {
        ASSERT_TRUE(run.tracer.freeze_all(limit()));
        run.tracer.thaw_all();
        ASSERT_TRUE(run.until_asleep().all_blocked_for_good);
    }
    EXPECT_EQ(run.buffers[0]->wake(), 1);
    const auto woken = run.next<FutexWaitEnd>();
    ASSERT_TRUE(woken);
    EXPECT_EQ(woken->wait_id, second->wait_id);
    EXPECT_EQ(woken->result, 0);
    EXPECT_EQ(run.finish().exit_status, 0);
    EXPECT_EQ(run.tracer.output().standard_output(), "interrupted -4\nrestarted 0\n");
}

// The wait of an ended thread has no sleeper any more.
TEST_P(FutexTest, AWaitEndsWithItsThread) {
    for (const char* mode : {"cancelled", "executed"}) {
        TestRun run(options_for(GetParam()));
        run.start(mode);
        std::map<uint64_t, FutexWait> waits;  // by buffer
        while (waits.size() < 2) {
            const auto wait = run.next<FutexWait>();
            ASSERT_TRUE(wait) << mode;
            waits[wait->words.at(0).place.buffer] = *wait;
        }
        ASSERT_TRUE(run.until_asleep().all_blocked_for_good) << mode;
        EXPECT_EQ(run.buffers[1]->wake(), 1);
        std::vector<FutexWaitEnd> ends;
        const Ended ended = run.finish([&](const TracerEvent& event) {
            if (const auto* end = std::get_if<FutexWaitEnd>(&event)) ends.push_back(*end);
        });
        EXPECT_EQ(ended.exit_status, 5) << mode;
        ASSERT_EQ(ends.size(), 2u) << mode;
        EXPECT_EQ(ends[0].wait_id, waits[1].wait_id) << mode;
        EXPECT_FALSE(ends[0].thread_ended) << mode;
        EXPECT_EQ(ends[1].wait_id, waits[0].wait_id) << mode;
        EXPECT_TRUE(ends[1].thread_ended) << mode;
    }
}

// A stopped wait with a timeout continues by restart_syscall. It is still the same wait with the
// same timeout.
TEST_P(FutexTest, ATimedWaitSurvivesStops) {
    const auto stop_five_times = [](TestRun& run, MappingId) -> std::optional<FutexWaitEnd> {
        for (int i = 0; i < 5; ++i) {
            const TracerEvent event = run.tracer.wait(Clock::now() + std::chrono::milliseconds(5));
            if (const auto* end = std::get_if<FutexWaitEnd>(&event)) return *end;
            EXPECT_FALSE(run.tracer.inspect().all_blocked_for_good);
            if (!run.tracer.freeze_all(limit())) return end_before_failed("freeze_all", run);
            run.tracer.thaw_all();
        }
        return std::nullopt;
    };
    act_in_timed_wait(options_for(GetParam()), stop_five_times);
}

// The runner can report that a wait was interrupted although it was not.
TEST_P(FutexTest, TheResultOfAWaitCanBeReplaced) {
    TestRun run(options_for(GetParam()));
    run.start("sleep");
    const auto wait = run.next<FutexWait>();
    ASSERT_TRUE(wait);
    EXPECT_FALSE(run.tracer.set_wait_result(wait->tid, -EINTR)) << "it has not been made yet";
    ASSERT_TRUE(run.until_asleep().all_blocked_for_good);
    run.buffers[0]->wake();
    const auto end = run.next<FutexWaitEnd>();
    ASSERT_TRUE(end);
    EXPECT_EQ(end->result, 0);
    EXPECT_TRUE(run.tracer.set_wait_result(end->tid, -EINTR));
    EXPECT_EQ(run.finish().exit_status, 0);
    EXPECT_EQ(run.tracer.output().standard_output(), "woken -4\n");
}

TEST(FutexOption, SwitchedOffReportsNothing) {
    TracerOptions options;
    options.report_futex = false;
    TestRun run(options);
    *run.buffers[0]->word() = *run.buffers[1]->word() = 3;
    run.start("futex-kinds");
    bool woken = false;
    for (const TimePoint deadline = limit(); Clock::now() < deadline;) {
        const TracerEvent event = run.tracer.wait(Clock::now() + std::chrono::milliseconds(2));
        EXPECT_FALSE(std::holds_alternative<FutexWait>(event) ||
                     std::holds_alternative<FutexWaitEnd>(event) ||
                     std::holds_alternative<FutexOther>(event));
        if (std::holds_alternative<Ended>(event)) break;
        // In futex_waitv: inspect() finds the ring words without events.
        const Inspection inspection = run.tracer.inspect();
        if (!woken && inspection.all_blocked_for_good && inspection.threads[0].words.size() == 2) {
            woken = run.buffers[1]->wake() == 1;
        }
    }
    EXPECT_TRUE(woken);
}

}  // namespace
}  // namespace kmes::conformance
