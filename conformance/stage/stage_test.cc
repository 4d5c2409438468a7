// SPDX-License-Identifier: MIT
//
// The limits of a stage on a busy machine. Time that the runner did not get does not count against
// the testee. A testee that does nothing is found nevertheless.
#include "conformance/stage/stage.h"
#include "conformance/stage/run.h"
#include "conformance/stage/stop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

namespace kmes::conformance {
namespace {

using std::chrono::milliseconds;

// A fraction of a limit that is 30 s by default.
constexpr double kShort = 0.05;
constexpr milliseconds kLongerThanThat{4000};
constexpr int kTriesOnABusyMachine = 10;

class StageLimits : public testing::Test {
  protected:
    StageLimits() {
        settings_.stop = &stop_;
        settings_.timeout_scale = kShort;
        settings_.testee = {"conformance/testees/c_consumer"};
    }

    StopFlag stop_;
    StageSettings settings_;
    Case case_{"5.1.5/attach-and-map", Level::must, "", "", "", nullptr, Demand::explored};
};

TEST_F(StageLimits, AStoppedRunnerBlamesNoTestee) {
    bool has_slept = false;
    case_.run = [&](Stage& stage) {
        stage.hooks().set_on_mapped([&](const Mapped&) {
            if (!has_slept) std::this_thread::sleep_for(kLongerThanThat);
            has_slept = true;
        });
        stage.start();
        stage.waits().mapped();
        return stage.finish();
    };
    const CaseOutcome outcome = run_with_monitors(case_, settings_, nullptr);
    EXPECT_TRUE(has_slept);
    EXPECT_EQ(outcome.verdict, Verdict::pass) << outcome.message;
}

TEST_F(StageLimits, ProcessorTimeRevealsASpin) {
    case_.run = [&](Stage& stage) {
        stage.start();
        stage.waits().mapped();
        stage.waits().until([] { return false; }, "an impossible state");
        return stage.finish();
    };
    settings_.testee = {"conformance/testees/broken_spins"};
    bool is_by_processor_time = false;
    std::string message;
    // If other programs use the processors, the limit of real time can come first.
    for (int i = 0; i < kTriesOnABusyMachine && !is_by_processor_time; ++i) {
        const CaseOutcome outcome = run_with_monitors(case_, settings_, nullptr);
        message = outcome.message;
        ASSERT_EQ(outcome.verdict, Verdict::fail);
        EXPECT_NE(message.find("an impossible state"), std::string::npos) << message;
        EXPECT_TRUE(outcome.has_hung);
        is_by_processor_time = message.find("ms of processor time") != std::string::npos;
    }
    EXPECT_TRUE(is_by_processor_time) << message;
}

TEST_F(StageLimits, ASteppedTesteeIsNotBlamedForItsTime) {
    case_.run = [&](Stage& stage) {
        stage.start();
        stage.waits().mapped();
        stage.guards().guard(0, 1, 1, [](const GuardHit&) { return AtGuard::step; });
        stage.waits().until([] { return false; }, "an impossible state");
        return stage.finish();
    };
    settings_.stepper = Stepper::single_step;
    settings_.testee = {"conformance/testees/broken_spins"};
    const CaseOutcome outcome = run_with_monitors(case_, settings_, nullptr);
    EXPECT_EQ(outcome.verdict, Verdict::inconclusive) << outcome.message;
    EXPECT_NE(outcome.message.find("by single steps"), std::string::npos) << outcome.message;
}

// It delivers every event, and there are always more.
TEST_F(StageLimits, ACaseThatGoesOnForeverIsInconclusive) {
    case_.run = [](Stage& stage) {
        stage.start();
        for (;;) {
            stage.wait_asleep();
            stage.rings().emit(0, stage.rings().events().make(64));
        }
        return stage.finish();
    };
    settings_.longest_run_seconds = 20;  // times the scale: 1 s
    const CaseOutcome outcome = run_with_monitors(case_, settings_, nullptr);
    EXPECT_EQ(outcome.verdict, Verdict::inconclusive) << outcome.message;
    EXPECT_THAT(outcome.message, ::testing::HasSubstr("was not over after 1 s, although"));
    EXPECT_FALSE(outcome.has_hung);
}

TEST_F(StageLimits, AStepperThatIsNotKnownHasAReason) {
    settings_.testee = {"/bin/true"};
    EXPECT_THAT(describe_stepper(settings_, 0),
                ::testing::StartsWith("not known: the consumer mapped no buffer in a first run "
                                      "with 1 CPU; it has exited with status 0"));
    EXPECT_THAT(describe_stepper(settings_, 2),
                ::testing::HasSubstr("with 1 CPU (the check before it had 2); it has exited"));
    settings_.testee = {"conformance/testees/c_consumer"};
    EXPECT_THAT(describe_stepper(settings_, 2), ::testing::Not(::testing::HasSubstr("not known")));
}

// As the kernel does where memory is used up.
TEST_F(StageLimits, ATesteeThatIsKilledFromOutsideIsNotBlamed) {
    case_.run = [&](Stage& stage) {
        stage.start();
        stage.wait_asleep();
        ::kill(stage.testee().tracer().testee_pid(), SIGKILL);
        return stage.finish();
    };
    const CaseOutcome outcome = run_with_monitors(case_, settings_, nullptr);
    EXPECT_EQ(outcome.verdict, Verdict::inconclusive) << outcome.message;
    EXPECT_NE(outcome.message.find("signal 9 (Killed)"), std::string::npos) << outcome.message;
}

// A crash while the case reads the processor time of the testee, for example.
TEST_F(StageLimits, AnUnsupportedCaseOfATesteeThatDiesFails) {
    case_.run = [](Stage& stage) -> CaseOutcome {
        stage.start();
        stop_unsupported("no processor time");
    };
    settings_.testee = {"sh", "-c", "kill -SEGV $$"};
    const CaseOutcome outcome = run_with_monitors(case_, settings_, nullptr);
    EXPECT_EQ(outcome.verdict, Verdict::fail) << outcome.message;
    EXPECT_THAT(outcome.message, testing::HasSubstr("SIGSEGV"));
}

TEST_F(StageLimits, AnUnsupportedCaseOfATesteeThatHasLostAnEventFails) {
    case_.run = [](Stage& stage) -> CaseOutcome {
        stage.start();
        stage.wait_asleep();
        for (const std::uint64_t payload_bytes : {70, 0}) {
            const std::uint64_t bytes = kLeastEventBytes + payload_bytes;
            stage.rings().emit(0, stage.rings().events().make(bytes));
        }
        stage.ending().emit_ends();
        stage.waits().exited("an exit");
        stop_unsupported("no processor time");
    };
    EXPECT_EQ(run_with_monitors(case_, settings_, nullptr).verdict, Verdict::unsupported);
    settings_.testee = {"conformance/testees/broken_drops-empty-payloads"};
    const CaseOutcome outcome = run_with_monitors(case_, settings_, nullptr);
    EXPECT_EQ(outcome.verdict, Verdict::fail) << outcome.message;
    EXPECT_NE(outcome.record, nullptr);
}

TEST_F(StageLimits, AnUnsupportedCaseOfATesteeThatLivesIsUnsupported) {
    case_.run = [](Stage& stage) -> CaseOutcome {
        stage.start();
        stage.wait_asleep();
        stop_unsupported("no processor time");
    };
    const CaseOutcome outcome = run_with_monitors(case_, settings_, nullptr);
    EXPECT_EQ(outcome.verdict, Verdict::unsupported) << outcome.message;
    EXPECT_EQ(outcome.message, "no processor time");
}

// Adding and removing guards interrupts the wait of the testee. An event directly after that must
// find the testee in futex_wait again: otherwise the wait ends because of another value. (Only a
// woken wait returns the result that the case sets.)
TEST_F(StageLimits, AnEventAfterGuardsWakesASleeper) {
    constexpr std::uint64_t kIterations = 20;
    std::uint64_t woken = 0;
    case_.run = [&](Stage& stage) {
        RingsSetup setup = stage.default_setup();
        setup.cpus = 1;
        stage.set_up(setup);
        stage.start();
        stage.hooks().set_wake_result(-EINTR);
        for (std::uint64_t iteration = 0; iteration < kIterations; ++iteration) {
            stage.wait_asleep();
            stage.guards().guard(0, 0, 1, [](const GuardHit&) { return AtGuard::step; });
            stage.guards().release();
            stage.rings().emit(0, stage.rings().events().make(100));
        }
        stage.wait_asleep();
        woken = stage.hooks().reported_wake_results();
        stage.hooks().set_wake_result(0);
        return stage.finish();
    };
    settings_.timeout_scale = 1;
    const CaseOutcome outcome = run_with_monitors(case_, settings_, nullptr);
    EXPECT_EQ(outcome.verdict, Verdict::pass) << outcome.message;
    EXPECT_EQ(woken, kIterations);
}

// A testee with one thread, which always waits on CPU 0 with a limit, and events of another CPU.
class StageShortenedWaits : public StageLimits {
  protected:
    // Emits at least kIterations events, and continues until `enough` is true. Returns how many
    // waits of the testee a wake has ended.
    std::uint64_t woken_waits(bool shortens_waits, const std::function<bool(std::uint64_t)>& enough,
                              const std::string& testee = "round-robin-first-cpu") {
        constexpr int kIterations = 5;
        std::uint64_t woken = 0;
        case_.run = [&](Stage& stage) {
            stage.start();
            stage.wait_asleep();
            stage.hooks().set_on_wait_end(
                [&](const FutexWaitEnd& end) { woken += end.result == 0; });
            {
                std::optional<ShortenedWaits> shortened_waits;
                if (shortens_waits) shortened_waits.emplace(stage.waits());
                for (int iteration = 0; iteration < kIterations || !enough(woken); ++iteration) {
                    stage.rings().emit(3, stage.rings().events().make(100));
                    stage.wait_asleep(3);
                }
            }
            stage.hooks().set_on_wait_end(nullptr);
            return stage.finish();
        };
        settings_.timeout_scale = 1;
        settings_.testee = {"conformance/testees/correct/" + testee + ".program"};
        const CaseOutcome outcome = run_with_monitors(case_, settings_, nullptr);
        EXPECT_EQ(outcome.verdict, Verdict::pass) << outcome.message;
        return woken;
    }
};

TEST_F(StageShortenedWaits, ASleeperOnAnotherCpuIsWoken) {
    EXPECT_GT(woken_waits(true, [](std::uint64_t woken) { return woken > 0; }), 0u);
}

TEST_F(StageShortenedWaits, AnotherThreadIsIrrelevant) {
    const auto enough = [](std::uint64_t woken) { return woken > 0; };
    EXPECT_GT(woken_waits(true, enough, "round-robin-with-heartbeat"), 0u);
}

TEST_F(StageShortenedWaits, NoThreadIsWokenWithoutThem) {
    EXPECT_EQ(woken_waits(false, [](std::uint64_t) { return true; }), 0u);
}

}  // namespace
}  // namespace kmes::conformance
