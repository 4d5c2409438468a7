// SPDX-License-Identifier: MIT
//
// The testee and the runner share one processor while they take turns, and only then.

#include <sched.h>

#include <optional>

#include "conformance/tracer/testing.h"

namespace kmes::conformance {
namespace {

using tracer_testing::kBothWays;
using tracer_testing::name_of;
using tracer_testing::options_for;
using tracer_testing::TestRun;

std::vector<int> processors_of(pid_t tid) {
    cpu_set_t set;
    std::vector<int> processors;
    EXPECT_EQ(sched_getaffinity(tid, sizeof set, &set), 0) << "of thread " << tid;
    for (int i = 0; i < CPU_SETSIZE; ++i) {
        if (CPU_ISSET(i, &set)) processors.push_back(i);
    }
    return processors;
}

class SharedProcessorTest : public testing::TestWithParam<Interception> {
  protected:
    void SetUp() override {
        if (all_.size() < 2) GTEST_SKIP() << "this machine gives the test one processor";
        run_.emplace(options_for(GetParam()));
        run_->start("guarded-threads");
        const auto mapped = run_->next<Mapped>();
        ASSERT_TRUE(mapped);
        mapping_ = mapped->mapping.id;
    }

    void expect_all_on(const std::vector<int>& processors) {
        EXPECT_EQ(processors_of(0), processors) << "of the runner";
        for (const pid_t tid : run_->tracer.testee_threads())
            EXPECT_EQ(processors_of(tid), processors) << "of thread " << tid;
    }

    const std::vector<int> all_ = processors_of(0);
    MappingId mapping_ = 0;
    std::optional<TestRun> run_;
};
INSTANTIATE_TEST_SUITE_P(Ways, SharedProcessorTest, kBothWays, name_of);

TEST_P(SharedProcessorTest, OnOneProcessorWhilePagesAreGuarded) {
    run_->tracer.unshare_processor();
    expect_all_on(all_);
    ASSERT_TRUE(run_->tracer.guards().add(mapping_, 0, 1));
    const std::vector<int> one = processors_of(0);
    EXPECT_EQ(one.size(), 1u);
    expect_all_on(one);
    run_->tracer.unshare_processor();
    expect_all_on(one);
    // Threads created under guards are moved with the others.
    std::map<pid_t, int> hits;
    while (hits.size() < 3) {
        const auto hit = run_->next<GuardHit>();
        ASSERT_TRUE(hit);
        ++hits[hit->tid];
        expect_all_on(one);
        ASSERT_EQ(run_->tracer.guards().step(hit->tid).outcome, GuardStep::Outcome::kDone);
    }
    ASSERT_TRUE(run_->tracer.guards().remove_all(mapping_));
    expect_all_on(all_);
}

TEST_P(SharedProcessorTest, UntilItWaits) {
    ASSERT_TRUE(run_->next<FutexWait>());
    static_cast<void>(run_->tracer.wait(Clock::now() + std::chrono::milliseconds(1)));
    expect_all_on(all_);
}

TEST_P(SharedProcessorTest, AThreadThatHasChosenItsProcessorKeepsIt) {
    run_->tracer.unshare_processor();
    ASSERT_TRUE(run_->next<FutexWait>());
    run_->tracer.unshare_processor();
    const pid_t chooser = run_->tracer.testee_pid();
    for (const int chosen : {all_[0], all_[1]}) {
        cpu_set_t set;
        CPU_ZERO(&set);
        CPU_SET(chosen, &set);
        ASSERT_EQ(sched_setaffinity(chooser, sizeof set, &set), 0);
        ASSERT_TRUE(run_->tracer.guards().add(mapping_, 0, 1));
        EXPECT_EQ(processors_of(chooser), std::vector<int>{chosen});
        ASSERT_TRUE(run_->tracer.guards().remove_all(mapping_));
        EXPECT_EQ(processors_of(chooser), std::vector<int>{chosen});
        EXPECT_EQ(processors_of(0), all_);
    }
}

// A thread may choose the processor that all share at that moment.
TEST_P(SharedProcessorTest, AThreadKeepsTheCommonProcessorIfItHasChosenIt) {
    run_.reset();
    TestRun run(options_for(GetParam()));
    run.start("chooses-its-processor");
    const auto mapped = run.next<Mapped>();
    ASSERT_TRUE(mapped);
    ASSERT_TRUE(run.tracer.guards().add(mapped->mapping.id, 1, 1));
    const std::vector<int> one = processors_of(0);
    ASSERT_TRUE(run.next<FutexWait>());
    EXPECT_EQ(processors_of(run.tracer.testee_pid()), one);
    ASSERT_TRUE(run.tracer.guards().remove_all(mapped->mapping.id));
    EXPECT_EQ(processors_of(0), all_);
    EXPECT_EQ(processors_of(run.tracer.testee_pid()), one);
}

TEST_P(SharedProcessorTest, TheRunnersThreadIsFreeAfterTheRun) {
    ASSERT_TRUE(run_->tracer.guards().add(mapping_, 0, 1));
    EXPECT_EQ(processors_of(0).size(), 1u);
    run_.reset();
    EXPECT_EQ(processors_of(0), all_);
}

}  // namespace
}  // namespace kmes::conformance
