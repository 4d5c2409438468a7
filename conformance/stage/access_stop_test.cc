// SPDX-License-Identifier: MIT
#include "conformance/stage/access_stop.h"

#include <gtest/gtest.h>

#include <vector>

namespace kmes::conformance {
namespace {

constexpr pid_t kThread = 100;
constexpr pid_t kOther = 101;

GuardHit hit_of(pid_t thread) {
    GuardHit hit;
    hit.tid = thread;
    return hit;
}

class AccessStopTest : public testing::Test {
  protected:
    // A thread reaches an access, and does it unless it is held. Returns whether it did.
    bool access(pid_t thread = kThread) {
        const GuardHit hit = hit_of(thread);
        if (access_stop_.hold_if_due(hit, 0)) return false;
        access_stop_.note_done(hit, 0, GuardStep{});
        return true;
    }
    AccessStop access_stop_;
};

TEST_F(AccessStopTest, StopsNoAccessBeforeBegin) {
    EXPECT_TRUE(access());
    EXPECT_FALSE(access_stop_.is_stopped());
    EXPECT_TRUE(access_stop_.take_accesses().empty());
}

TEST_F(AccessStopTest, StopsBeforeTheChosenAccess) {
    access_stop_.begin(3);
    EXPECT_TRUE(access());
    EXPECT_TRUE(access());
    EXPECT_FALSE(access_stop_.is_stopped());
    EXPECT_FALSE(access());
    EXPECT_TRUE(access_stop_.is_stopped());
    const std::vector<AccessStop::Access> accesses = access_stop_.take_accesses();
    ASSERT_EQ(accesses.size(), 3u);
    EXPECT_TRUE(accesses[1].step);
    EXPECT_FALSE(accesses[2].step);
    EXPECT_TRUE(access_stop_.take_accesses().empty());
}

TEST_F(AccessStopTest, HoldsAllThreads) {
    access_stop_.begin(1);
    EXPECT_FALSE(access());
    EXPECT_FALSE(access(kOther));
    EXPECT_TRUE(access_stop_.take_released().empty());
    access_stop_.end();
    EXPECT_EQ(access_stop_.take_released(), (std::vector<pid_t>{kThread, kOther}));
    EXPECT_TRUE(access_stop_.take_released().empty());
    EXPECT_TRUE(access());
}

TEST_F(AccessStopTest, CountsTheStoppedAccessAsTheFirst) {
    access_stop_.begin(1);
    EXPECT_FALSE(access());
    access_stop_.begin(2);
    EXPECT_EQ(access_stop_.take_released(), (std::vector<pid_t>{kThread}));
    EXPECT_TRUE(access());
    EXPECT_FALSE(access());
}

TEST_F(AccessStopTest, KeepsTheFirstAccessesOfASpin) {
    access_stop_.begin(1000);
    for (int i = 0; i < 500; ++i) access();
    const std::size_t kept = access_stop_.take_accesses().size();
    EXPECT_GT(kept, 0u);
    EXPECT_LT(kept, 500u);
}

}  // namespace
}  // namespace kmes::conformance
