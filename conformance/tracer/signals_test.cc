// SPDX-License-Identifier: MIT
//
// Threads that block SIGSEGV meet guards, and the testee sees nothing of that in its signals,
// whatever another thread does at that moment. The test holds the runner, so each order is the same
// in every run.

#include <gtest/gtest.h>
#include <sys/ptrace.h>

#include <csignal>
#include <cstring>
#include <thread>

#include "conformance/tracer/proc.h"
#include "conformance/tracer/resume_hook.h"
#include "conformance/tracer/testing.h"

namespace kmes::conformance {
namespace {

using tracer_testing::kBothWays;
using tracer_testing::limit;
using tracer_testing::name_of;
using tracer_testing::options_for;
using tracer_testing::TestRun;

constexpr uint64_t kReaderGoes = 100;  // the testee uses the same number of data bytes
constexpr uint64_t kMainGoes = 108;
constexpr uint64_t kNeedWake = 132;
constexpr uint64_t kReaderNumber = 1024;
constexpr size_t kReaders = 2;

void await(const std::function<bool()>& condition) {
    const TimePoint deadline = limit();
    while (!condition()) {
        if (Clock::now() > deadline) {
            ADD_FAILURE() << "what is awaited does not happen";
            return;
        }
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
}

bool is_stopped(pid_t tid) {
    const auto status = tracing::read_status(tid);
    return !status || status->state == 't' || status->state == 'Z' || status->state == 'X';
}

// Waits until the testee has said that it makes no more system calls.
void await_ready(TestRun& run) {
    await([&] {
        (void)run.tracer.wait(Clock::now() + std::chrono::milliseconds(1));
        return run.buffers[0]->metadata()[kNeedWake] != 0;
    });
}

// Removes the hook at the end of its scope.
struct HookScope {
    HookScope() = default;
    ~HookScope() { resume_hook = nullptr; }
    HookScope(const HookScope&) = delete;
    HookScope& operator=(const HookScope&) = delete;
};

// A testee whose readers block SIGSEGV, and whose first thread acts while they fault.
class FaultBeside {
  public:
    // The second reader meets its guard before the first thread resumes for the `nth` time.
    FaultBeside(Interception interception, const std::string& action, uint64_t nth)
        : nth_(nth), run_(options_for(interception)), action_(action) {
        resume_hook = [this](pid_t tid) {
            if (!counts_ || tid != main_) return;
            // Another program was executed: no reader is left to fault.
            counts_ = tracing::read_status(readers_[1]).has_value();
            if (counts_ && ++resumes_ == nth_) let_reader(1);
        };
    }

    Ended play() {
        run_.tracer.start({tracer_testing::testdata("testee"), "beside-a-fault", action_});
        const auto mapped = run_.next<Mapped>();
        if (!mapped) return {};
        await_ready(run_);
        main_ = mapped->tid;
        for (size_t i = 0; i < kReaders; ++i) readers_[i] = number_of_reader(i);
        run_.tracer.handlers().guarded_access = [](const GuardHit&) { return GuardAnswer::kStep; };
        EXPECT_TRUE(run_.tracer.guards().add(mapped->mapping.id, 0, 1));
        (void)run_.tracer.wait(Clock::now());
        // The first reader has faulted, and the runner does not know it yet, when the other thread
        // acts.
        let_reader(0);
        run_.buffers[0]->data()[kMainGoes] = 1;
        await([&] { return is_stopped(main_); });
        counts_ = true;
        return run_.finish();
    }

    uint64_t resumes() const { return resumes_; }

  private:
    pid_t number_of_reader(size_t which) {
        int32_t number = 0;
        std::memcpy(&number, run_.buffers[0]->metadata() + kReaderNumber + which * sizeof number,
                    sizeof number);
        return number;
    }

    void let_reader(size_t which) {
        run_.buffers[0]->data()[kReaderGoes + which] = 1;
        await([&] { return is_stopped(readers_[which]); });
    }

    uint64_t nth_;
    uint64_t resumes_ = 0;
    bool counts_ = false;
    pid_t main_ = 0;
    pid_t readers_[kReaders] = {};
    TestRun run_;
    std::string action_;
    HookScope hook_;
};

class SignalsTest : public testing::TestWithParam<Interception> {};
INSTANTIATE_TEST_SUITE_P(Ways, SignalsTest, kBothWays, name_of);

// Plays every action of the first thread with an unreceived fault of one reader. Another reader
// faults at each point where the runner resumes the first thread.
void play_at_each_resume(Interception interception, const std::string& action, int exit_status) {
    constexpr uint64_t kMostResumes = 1000;
    for (uint64_t nth = 1; nth < kMostResumes; ++nth) {
        SCOPED_TRACE(action + ", resume " + std::to_string(nth));
        FaultBeside run(interception, action, nth);
        const Ended ended = run.play();
        EXPECT_EQ(ended.kind, EndKind::kExited) << ended.text;
        EXPECT_EQ(ended.exit_status, exit_status) << ended.text;
        if (testing::Test::HasFailure() || run.resumes() < nth) return;
    }
    ADD_FAILURE() << "the testee does not end";
}

TEST_P(SignalsTest, AFaultOfItsOwnIsHandled) {
    play_at_each_resume(GetParam(), "fault", 0);
}
TEST_P(SignalsTest, TheHandlerIsThere) {
    play_at_each_resume(GetParam(), "ask", 0);
}
TEST_P(SignalsTest, AnotherHandlerIsTheOneThatStays) {
    play_at_each_resume(GetParam(), "change", 0);
}
TEST_P(SignalsTest, AForkedChildHasTheHandler) {
    play_at_each_resume(GetParam(), "fork", 0);
}
TEST_P(SignalsTest, AChildOfVforkHasTheHandler) {
    play_at_each_resume(GetParam(), "vfork", 0);
}
TEST_P(SignalsTest, ANewThreadHasTheHandler) {
    play_at_each_resume(GetParam(), "clone", 0);
}
TEST_P(SignalsTest, AHandlerMayReadTheRingWithSignalsBlocked) {
    play_at_each_resume(GetParam(), "signal", 0);
}
TEST_P(SignalsTest, ItMayExecuteAnotherProgram) {
    play_at_each_resume(GetParam(), "execute", 5);
}
TEST_P(SignalsTest, ItMayEnd) {
    play_at_each_resume(GetParam(), "end", 0);
}

// A fault of the testee itself meets two injections, with an interrupt each time that it comes
// back. It still has its address when its handler is called.
TEST_P(SignalsTest, AFaultKeepsItsAddressThroughInjections) {
    pid_t interrupted = 0;
    const HookScope hook;
    resume_hook = [&](pid_t tid) {
        if (tid == interrupted) ptrace(PTRACE_INTERRUPT, tid, 0, 0);
    };
    TestRun run(options_for(GetParam()));
    run.tracer.start({tracer_testing::testdata("testee"), "beside-a-fault", "fault", "alone"});
    const auto mapped = run.next<Mapped>();
    ASSERT_TRUE(mapped);
    await_ready(run);
    run.buffers[0]->data()[kMainGoes] = 1;
    await([&] { return is_stopped(mapped->tid); });
    interrupted = mapped->tid;
    for (int i = 0; i < 3; ++i) {
        ASSERT_TRUE(run.tracer.guards().add(mapped->mapping.id, 0, 1));
        (void)run.tracer.wait(Clock::now());
        await([&] { return is_stopped(mapped->tid); });
        ASSERT_TRUE(run.tracer.guards().remove_all(mapped->mapping.id));
        (void)run.tracer.wait(Clock::now());
        await([&] { return is_stopped(mapped->tid); });
    }
    resume_hook = nullptr;
    const Ended ended = run.finish();
    EXPECT_EQ(ended.kind, EndKind::kExited) << ended.text;
    EXPECT_EQ(ended.exit_status, 0) << ended.text;
}

const char* const kAllBlockedSays =
    "interrupted 1\nhandled 1\nblocked again 1\nblocks in the handler 0\n"
    "interrupted 1\nhandled 1\nblocked again 1\n"
    "interrupted 1\nhandled 1\nblocked again 1\n"
    "interrupted 1\nhandled 1\nblocked again 1\n"
    "pending 1\ntaken 1\npending 0\nhandled 0\nin the frame 1\nblocked 1\nits handler 1\n"
    "its trap handler 1\n";

Ended play_all_blocked(TracerOptions options, const std::string& end, std::string& output) {
    TestRun run(std::move(options));
    run.tracer.start({tracer_testing::testdata("testee"), "all-blocked", end});
    const auto mapped = run.next<Mapped>();
    if (!mapped || !run.tracer.guards().add(mapped->mapping.id, 0, 1)) {
        ADD_FAILURE();
        return {};
    }
    run.tracer.handlers().guarded_access = [](const GuardHit&) { return GuardAnswer::kStep; };
    const Ended ended = run.finish();
    output = run.tracer.output().standard_output();
    return ended;
}

// sigsuspend and similar calls, a sent SIGSEGV, a signal's frame: all as without guards.
TEST_P(SignalsTest, AThreadThatBlocksAllSignalsSeesItsOwnMask) {
    for (const Stepping stepping : {Stepping::kGuardPages, Stepping::kSingleStep}) {
        SCOPED_TRACE(stepping == Stepping::kGuardPages ? "guard pages" : "single steps");
        TracerOptions options = options_for(GetParam());
        options.stepping = stepping;
        std::string output;
        const Ended ended = play_all_blocked(options, "well", output);
        EXPECT_EQ(ended.kind, EndKind::kExited) << ended.text;
        EXPECT_EQ(ended.exit_status, 0) << ended.text;
        EXPECT_EQ(output, kAllBlockedSays);
    }
}

// A fault of the testee itself that it blocks ends it: the kernel does not call the handler then.
TEST_P(SignalsTest, AFaultThatIsBlockedEndsTheTestee) {
    std::string output;
    const Ended ended = play_all_blocked(options_for(GetParam()), "fault", output);
    EXPECT_EQ(ended.kind, EndKind::kKilled) << ended.text;
    EXPECT_EQ(ended.signal, SIGSEGV) << ended.text;
    EXPECT_TRUE(ended.fault);
    EXPECT_EQ(output, kAllBlockedSays);
}

}  // namespace
}  // namespace kmes::conformance
