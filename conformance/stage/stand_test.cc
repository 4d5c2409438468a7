// SPDX-License-Identifier: MIT
#include "conformance/stage/stand.h"

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

class StandTest : public testing::Test {
  protected:
    // A thread comes to an access, and does it unless it is held.
    bool access(pid_t thread = kThread) {
        const GuardHit hit = hit_of(thread);
        if (stand_.holds(hit, 0)) return false;
        stand_.note_done(hit, 0, GuardStep{});
        return true;
    }
    Stand stand_;
};

TEST_F(StandTest, LetsEveryAccessHappenBeforeItBegins) {
    EXPECT_TRUE(access());
    EXPECT_FALSE(stand_.is_standing());
    EXPECT_TRUE(stand_.take_accesses().empty());
}

TEST_F(StandTest, IsBeforeTheChosenAccess) {
    stand_.begin(3);
    EXPECT_TRUE(access());
    EXPECT_TRUE(access());
    EXPECT_FALSE(stand_.is_standing());
    EXPECT_FALSE(access());
    EXPECT_TRUE(stand_.is_standing());
    const std::vector<Stand::Access> accesses = stand_.take_accesses();
    ASSERT_EQ(accesses.size(), 3u);
    EXPECT_TRUE(accesses[1].step);
    EXPECT_FALSE(accesses[2].step);
    EXPECT_TRUE(stand_.take_accesses().empty());
}

TEST_F(StandTest, HoldsAllThreads) {
    stand_.begin(1);
    EXPECT_FALSE(access());
    EXPECT_FALSE(access(kOther));
    EXPECT_TRUE(stand_.take_released().empty());
    stand_.end();
    EXPECT_EQ(stand_.take_released(), (std::vector<pid_t>{kThread, kOther}));
    EXPECT_TRUE(stand_.take_released().empty());
    EXPECT_TRUE(access());
}

TEST_F(StandTest, CountsTheAccessThatItStandsBeforeAsTheFirst) {
    stand_.begin(1);
    EXPECT_FALSE(access());
    stand_.begin(2);
    EXPECT_EQ(stand_.take_released(), (std::vector<pid_t>{kThread}));
    EXPECT_TRUE(access());
    EXPECT_FALSE(access());
}

TEST_F(StandTest, KeepsTheFirstAccessesOfASpin) {
    stand_.begin(1000);
    for (int i = 0; i < 500; ++i) access();
    const std::size_t kept = stand_.take_accesses().size();
    EXPECT_GT(kept, 0u);
    EXPECT_LT(kept, 500u);
}

}  // namespace
}  // namespace kmes::conformance
