// SPDX-License-Identifier: MIT
#include "conformance/main/scheduling.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace kmes::conformance {
namespace {

TEST(Scheduling, LeavesRealTime) {
    for (const int policy : {SCHED_FIFO, SCHED_RR}) {
        sched_param parameters{};
        parameters.sched_priority = 1;
        if (sched_setscheduler(0, policy, &parameters) != 0)
            GTEST_SKIP() << "this user may not use a real-time policy";
        leave_real_time();
        EXPECT_EQ(sched_getscheduler(0), SCHED_OTHER);
    }
}

TEST(Scheduling, KeepsAFairPolicy) {
    for (const int policy : {SCHED_OTHER, SCHED_BATCH}) {
        const sched_param parameters{};
        ASSERT_EQ(sched_setscheduler(0, policy, &parameters), 0);
        leave_real_time();
        EXPECT_EQ(sched_getscheduler(0), policy);
    }
}

}  // namespace
}  // namespace kmes::conformance
