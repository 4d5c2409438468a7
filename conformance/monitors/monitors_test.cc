// SPDX-License-Identifier: MIT
//
// A mistake unrelated to the case is blamed by the clause of its monitor. A correct consumer passes
// the same case.
#include "conformance/monitors/monitors.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "conformance/monitors/idle_samples.h"
#include "conformance/monitors/run.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {
namespace {

class MonitorsTest : public testing::Test {
  protected:
    MonitorsTest() {
        settings_.stop = &stop_;
        settings_.cpus = 2;
        const char* scale = std::getenv("KMES_TIMEOUT_SCALE");
        if (scale != nullptr) settings_.timeout_scale = std::atof(scale);
    }

    CaseOutcome play(const std::string& testee, CaseFunction run) {
        case_.run = std::move(run);
        settings_.testee = {"conformance/testees/" + testee};
        return run_on_stage(case_, settings_);
    }

    void expect_blame(const std::string& testee, const CaseFunction& run, const std::string& clause,
                      const std::string& text) {
        const CaseOutcome outcome = play(testee, run);
        EXPECT_EQ(outcome.verdict, Verdict::fail) << outcome.message;
        EXPECT_EQ(outcome.clause, clause) << outcome.message;
        EXPECT_NE(outcome.message.find(text), std::string::npos) << outcome.message;
        const CaseOutcome correct = play("c_consumer", run);
        EXPECT_EQ(correct.verdict, Verdict::pass) << correct.message;
    }

    StopFlag stop_;
    StageSettings settings_;
    Case case_{"5.1.4/t-bytes", Level::must, "t", "d", "e", nullptr};
};

// An event on each CPU, and the end.
CaseOutcome one_event(Stage& stage) {
    stage.start();
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu)
        stage.rings().emit(cpu, stage.rings().events().make(100));
    stage.wait_asleep();
    return stage.finish();
}

TEST_F(MonitorsTest, APrivateFutexIsBlamedInACaseAboutBytes) {
    expect_blame("broken_private-futex-with-a-limit", one_event, "E17", "FUTEX_PRIVATE_FLAG");
}

TEST_F(MonitorsTest, ASleepWithoutNeedWakeIsBlamedBeforeAnEventIsLost) {
    expect_blame("broken_never-asks-for-a-wake", one_event, "5.1.8.2-1",
                 "sleeps with need_wake 0; expected 1");
}

// Another consumer of the buffer may have cleared the flag.
TEST_F(MonitorsTest, ANeedWakeThatTheSuiteHasPutBlamesNobody) {
    const CaseOutcome outcome = play("c_consumer", [](Stage& stage) {
        stage.start();
        stage.wait_asleep();
        const BufferIndex buffer = stage.rings().history().current_buffer(0);
        stage.rings().forged().put_need_wake(buffer, 0, "another consumer clears it");
        stage.wait_asleep();
        stage.rings().forged().put_need_wake(buffer, 1, "another consumer sets it");
        return stage.finish();
    });
    EXPECT_EQ(outcome.verdict, Verdict::pass) << outcome.message;
}

TEST_F(MonitorsTest, AStoreOutsideNeedWakeIsBlamed) {
    expect_blame("broken_resets-the-counter", one_event, "5.1.6.3",
                 "expected stores to need_wake (byte 132) only");
}

TEST_F(MonitorsTest, AStoreThatChangesNothingIsBlamedWhereItIsSeen) {
    EXPECT_EQ(play("broken_clears-a-reserved-byte", one_event).verdict, Verdict::pass);
    settings_.record_accesses = true;
    expect_blame("broken_clears-a-reserved-byte", one_event, "contract",
                 "the consumer wrote 1 byte at byte 133");
}

TEST_F(MonitorsTest, FilesThatStayOpenAreBlamedInACaseAboutBytes) {
    const auto replace_often = [](Stage& stage) {
        constexpr int kReplacements = 90;
        stage.start();
        for (int i = 0; i < kReplacements; ++i) {
            stage.wait_asleep();
            stage.resize(stage.capacity_bytes());
        }
        stage.wait_asleep();
        return stage.finish();
    };
    expect_blame("broken_leaks-fds", replace_often, "5.1.8.3-6", "open files after every 20");
}

// On a busy machine a consumer may still run after its last record, and end in the middle.
TEST_F(MonitorsTest, AConsumerThatEndsWhileItIsWatchedIsJudgedByItsEnd) {
    for (const bool has_ended : {false, true}) {
        const CaseOutcome correct = play("c_consumer", [has_ended](Stage& stage) {
            stage.start();
            stage.wait_asleep();
            stage.ending().emit_ends();
            if (has_ended) stage.waits().exited("an exit after the ends");
            EXPECT_EQ(find_idle_fault(stage), "");
            return stage.ending().finish_any_exit();
        });
        EXPECT_EQ(correct.verdict, Verdict::pass) << correct.message;
    }
    case_.run = [](Stage& stage) {
        stage.start();
        EXPECT_EQ(find_idle_fault(stage), "");
        return stage.finish();
    };
    settings_.testee = {"sh", "-c", "kill -SEGV $$"};
    const CaseOutcome dead = run_on_stage(case_, settings_);
    EXPECT_EQ(dead.verdict, Verdict::fail) << dead.message;
}

TEST_F(MonitorsTest, WorkBesideSleepingReadersThatEndsBlamesNobody) {
    constexpr int kEventsToWork = 200;
    const CaseOutcome outcome = play("correct/with-compiler.program", [](Stage& stage) {
        stage.start();
        for (int i = 0; i < kEventsToWork; ++i) {
            stage.rings().emit(0, stage.rings().events().make(100));
            if (i % 50 == 0) stage.wait_asleep();
        }
        stage.wait_asleep();
        EXPECT_EQ(find_idle_fault(stage), "");
        return stage.finish();
    });
    EXPECT_EQ(outcome.verdict, Verdict::pass) << outcome.message;
}

TEST_F(MonitorsTest, AThreadThatSpinsIsBlamedInACaseAboutBytes) {
    const auto end_one_cpu = [](Stage& stage) {
        stage.start();
        stage.rings().emit(0, stage.rings().events().make_end());
        stage.wait_asleep();
        return stage.finish();
    };
    expect_blame("broken_spins-until-all-have-ended", end_one_cpu, "5.1.8.2", "the idle consumer");
}

}  // namespace
}  // namespace kmes::conformance
