// SPDX-License-Identifier: MIT
//
// Which failure is shown first.
#include "conformance/main/telling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kmes::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(TellingTest, NothingFailed) {
    EXPECT_THAT(rank_failures({}), IsEmpty());
}

TEST(TellingTest, WhatWasMadeForItComesBeforeWhatFailedByAccident) {
    EXPECT_THAT(rank_failures({{"E10", "E3", 5}, {"E3", "E3", 40}, {"5.1.8.2", "E3", 3}}),
                ElementsAre(1, 2, 0));
}

TEST(TellingTest, FewerStepsComeFirst) {
    EXPECT_THAT(rank_failures({{"E3", "E3", 80'000}, {"E3", "E3", 12}}), ElementsAre(1, 0));
}

TEST(TellingTest, TheSameCountIsInTheOrderOfTheRun) {
    EXPECT_THAT(rank_failures({{"E3", "E3", 12}, {"E3", "E3", 12}}), ElementsAre(0, 1));
}

TEST(TellingTest, AStepOfAClauseIsNearIt) {
    const Failed near{"5.1.8.1-5", "5.1.8.1", 90};
    const Failed far{"5.1.8.2-5", "5.1.8.1", 10};
    EXPECT_TRUE(is_better_evidence(near, far));
    EXPECT_FALSE(is_better_evidence(far, near));
    EXPECT_TRUE(is_better_evidence({"5.1.8.1", "5.1.8.1-5", 90}, far));
}

TEST(TellingTest, ANumberIsNoPartOfALongerOne) {
    const Failed other{"E10", "E1", 1};
    const Failed far{"5.1.1", "E1", 0};
    EXPECT_FALSE(is_better_evidence(other, far));
}

TEST(TellingTest, TheBestOfEachClauseComesFirst) {
    // E3 was found by two cases that were made for it, E10 by one, 5.1.1 by none.
    EXPECT_THAT(rank_failures({{"5.1.2", "5.1.1", 1},
                               {"E10", "E10", 1},
                               {"E3", "E3", 20},
                               {"E3", "E3", 10},
                               {"5.1.8.2", "E10", 1}}),
                ElementsAre(3, 1, 0, 2, 4));
}

}  // namespace
}  // namespace kmes::conformance
