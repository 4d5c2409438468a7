// SPDX-License-Identifier: MIT
//
// Threads that cannot execute a call or a step of the tracer. The tracer gives up and says why.

#include <gmock/gmock.h>

#include <csignal>

#include "conformance/tracer/testing.h"

namespace kmes::conformance {
namespace {

using testing::HasSubstr;
using tracer_testing::kBothWays;
using tracer_testing::kNotPossibleHere;
using tracer_testing::limit;
using tracer_testing::name_of;
using tracer_testing::options_for;
using tracer_testing::TestRun;

class StuckTest : public testing::TestWithParam<Interception> {};
INSTANTIATE_TEST_SUITE_P(Ways, StuckTest, kBothWays, name_of);

// Returns the next trouble of the tracer; with a failure if the run ends or the limit passes first.
TracerTrouble next_trouble(Tracer& tracer) {
    const TimePoint deadline = limit();
    for (;;) {
        TracerEvent event = tracer.wait(deadline);
        if (auto* trouble = std::get_if<TracerTrouble>(&event)) return *trouble;
        const bool is_over =
            std::holds_alternative<Ended>(event) || std::holds_alternative<TimedOut>(event);
        if (!is_over) continue;
        ADD_FAILURE() << "no trouble was reported";
        return {};
    }
}

Ended until_end(Tracer& tracer) {
    const TimePoint deadline = limit();
    for (;;) {
        TracerEvent event = tracer.wait(deadline);
        if (auto* ended = std::get_if<Ended>(&event)) return *ended;
        if (!std::holds_alternative<TimedOut>(event)) continue;
        ADD_FAILURE() << "it does not end";
        return {};
    }
}

// The kernel sends SIGSEGV each time before the thread returns to its program. (If every call
// stops, this thread has a stop to be handled, and another one executes the tracer's calls.)
TEST(StuckThreadTest, AThreadWithoutItsRseqAreaEndsAsACrash) {
    TestRun run(options_for(Interception::kSeccomp));
    run.start("unmap-rseq-area");
    std::optional<MappingId> mapping;
    const TimePoint deadline = limit();
    for (bool is_waiting = false; !is_waiting;) {
        const TracerEvent event = run.tracer.wait(deadline);
        if (const auto* mapped = std::get_if<Mapped>(&event))
            mapping = mapping.value_or(mapped->mapping.id);
        const auto* ended = std::get_if<Ended>(&event);
        if (ended != nullptr && ended->exit_status == kNotPossibleHere)
            GTEST_SKIP() << "glibc has registered no rseq area";
        ASSERT_FALSE(ended != nullptr || std::holds_alternative<TimedOut>(event));
        is_waiting = std::holds_alternative<FutexWait>(event);
    }
    ASSERT_TRUE(mapping);
    EXPECT_FALSE(run.tracer.guards().add(*mapping, 0, 1));
    const TracerTrouble trouble = next_trouble(run.tracer);
    EXPECT_EQ(trouble.reason, TracerTrouble::Reason::stuck);
    EXPECT_EQ(trouble.tid, run.tracer.testee_pid());
    EXPECT_THAT(trouble.what, HasSubstr("faults again and again: SIGSEGV at address 0x"));
    EXPECT_THAT(trouble.what, HasSubstr(" in the thread's rseq area"));
    const Ended ended = until_end(run.tracer);
    EXPECT_EQ(ended.kind, EndKind::kKilled);
    EXPECT_EQ(ended.signal, SIGSEGV);
    ASSERT_TRUE(ended.fault);
    EXPECT_TRUE(ended.fault->is_in_rseq_area) << ended.text;
}

// Only with a filter does the tracer not learn of another syscall instruction in time.
TEST(StuckThreadTest, AHiddenSyscallInstructionIsReported) {
    TestRun run(options_for(Interception::kSeccomp));
    run.start("hide-syscall-instruction");
    const auto mapped = run.next<Mapped>();
    ASSERT_TRUE(mapped);
    const TimePoint deadline = limit();
    while (run.tracer.output().standard_output().find("hidden 0\n") == std::string::npos) {
        ASSERT_LT(Clock::now(), deadline);
        const TracerEvent event = run.tracer.wait(Clock::now() + std::chrono::milliseconds(2));
        ASSERT_FALSE(std::holds_alternative<Ended>(event));
    }
    EXPECT_FALSE(run.tracer.guards().add(mapped->mapping.id, 0, 1));
    const TracerTrouble trouble = next_trouble(run.tracer);
    EXPECT_EQ(trouble.reason, TracerTrouble::Reason::stuck);
    EXPECT_THAT(trouble.what, HasSubstr("faults again and again: SIGSEGV at address 0x"));
}

// A step of a call that sleeps does not return. No other thread would end it.
TEST_P(StuckTest, AnInterruptedRunEndsTheWaitForAStep) {
    TestRun run(options_for(GetParam()));
    run.start("sleep");
    const auto wait = run.next<FutexWait>();
    ASSERT_TRUE(wait);
    int questions = 0;
    run.tracer.handlers().is_interrupted = [&] { return ++questions == 3; };
    EXPECT_FALSE(run.tracer.guards().step_over(wait->tid));
    EXPECT_EQ(questions, 3);
    run.tracer.kill_all();
    EXPECT_EQ(until_end(run.tracer).kind, EndKind::kKilled);
}

// The runner writes the copied bytes to a page that a stopped thread would have to serve.
TEST(StuckAccessTest, AnAccessToAPageThatNobodyServesEndsTheTestee) {
    TestRun run(options_for(Interception::kSeccomp), 1);
    run.start("served-page");
    const TimePoint deadline = limit();
    std::optional<GuardHit> hit;
    while (!hit) {
        const TracerEvent event = run.tracer.wait(deadline);
        const auto* ended = std::get_if<Ended>(&event);
        if (ended != nullptr && ended->exit_status == kNotPossibleHere)
            GTEST_SKIP() << "userfaultfd is not permitted here";
        ASSERT_FALSE(ended != nullptr || std::holds_alternative<TimedOut>(event));
        if (const auto* mapped = std::get_if<Mapped>(&event)) {
            ASSERT_TRUE(run.tracer.guards().add(mapped->mapping.id, 0, 33));
        }
        if (const auto* found = std::get_if<GuardHit>(&event)) hit = *found;
    }
    ASSERT_TRUE(run.tracer.freeze_all(limit()));
    (void)run.tracer.guards().step(hit->tid);
    const TracerTrouble trouble = next_trouble(run.tracer);
    EXPECT_EQ(trouble.reason, TracerTrouble::Reason::not_followed);
    EXPECT_THAT(trouble.what, HasSubstr("(userfaultfd)"));
    const Ended ended = until_end(run.tracer);
    EXPECT_EQ(ended.kind, EndKind::kKilled);
    EXPECT_EQ(ended.signal, SIGKILL);
}

}  // namespace
}  // namespace kmes::conformance
