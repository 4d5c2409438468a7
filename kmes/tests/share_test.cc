/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* The shares of a test leave nothing out, and play nothing twice. */
#include "kmes/tests/share.h"

#include <gtest/gtest.h>
#include <stdlib.h>

namespace kmes::tests {
namespace {

class ShareTest : public testing::Test {
  protected:
    void SetUp() override { unsetenv("KMES_SHARE"); }
    void TearDown() override { unsetenv("KMES_SHARE"); }
};

TEST_F(ShareTest, IsAllWithoutTheVariable) {
    const Share share = share_of_today();

    for (std::uint64_t i = 0; i < 10; i++) EXPECT_TRUE(share.has(i));
}

TEST_F(ShareTest, EachThingIsInOneShare) {
    for (std::uint64_t i = 0; i < 20; i++) {
        int shares = 0;

        for (std::uint64_t number = 0; number < 7; number++) shares += Share{number, 7}.has(i);
        EXPECT_EQ(1, shares) << i;
    }
}

TEST_F(ShareTest, NumberIsBelowThatOfTheShares) {
    setenv("KMES_SHARE", "5", 1);
    const Share share = share_of_today();

    EXPECT_EQ(5u, share.shares);
    EXPECT_LT(share.number, 5u);
}

TEST_F(ShareTest, AnythingElseEndsTheTest) {
    for (const char* wrong : {"", "0", "-1", "4x", " 4", "1001", "99999999999999999999"}) {
        setenv("KMES_SHARE", wrong, 1);
        EXPECT_EXIT(share_of_today(), testing::ExitedWithCode(2), "a number from 1 to 1000, not")
            << wrong;
    }
}

}  // namespace
}  // namespace kmes::tests
