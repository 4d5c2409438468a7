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

std::vector<std::size_t> rank(const std::vector<Failed>& failures) {
    return rank_failures(group_failures(failures));
}

TEST(TellingTest, NothingFailed) {
    EXPECT_THAT(rank({}), IsEmpty());
}

TEST(TellingTest, WhatWasMadeForItComesBeforeWhatFailedByAccident) {
    EXPECT_THAT(rank({{"E10", "E3", 5}, {"E3", "E3", 40}, {"5.1.8.2", "E3", 3}}),
                ElementsAre(1, 2, 0));
}

TEST(TellingTest, ASimplerScenarioComesFirst) {
    EXPECT_THAT(rank({{"E3", "E3", 80'000}, {"E3", "E3", 12}}), ElementsAre(1, 0));
}

TEST(TellingTest, TheSameCountIsInTheOrderOfTheRun) {
    EXPECT_THAT(rank({{"E3", "E3", 12}, {"E3", "E3", 12}}), ElementsAre(0, 1));
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

// A crash has one reason, whatever the cases test: the clearest of them says the clause.
TEST(TellingTest, OneCauseIsOneGroupWhateverItsCasesTest) {
    const std::vector<Failed> failures = {{"E1", "E1", 500, "signal 6", true},
                                          {"5.1.1", "5.1.1", 20, "signal 6", true},
                                          {"E10", "E10", 90, "signal 6", true},
                                          {"E3", "E3", 10, "exit status 3", true}};
    const std::vector<FailureGroup> groups = group_failures(failures);
    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0].clause, "5.1.1");
    EXPECT_THAT(groups[0].members, ElementsAre(1, 2, 0));
    EXPECT_EQ(groups[1].clause, "E3");
}

// Whatever the cases test: a wrong mapping is seen best in the simplest of them.
TEST(TellingTest, AFaultThatLooksTheSameEverywhereIsShownByTheSimplestCase) {
    EXPECT_THAT(rank({{"contract-2", "contract-2", 200, "wrong-mapping"},
                      {"5.1.5", "contract-2", 0, "wrong-mapping"}}),
                ElementsAre(1, 0));
}

TEST(TellingTest, ASymptomInCasesOfManyClausesIsOfNoneOfThem) {
    std::vector<Failed> failures;
    for (const char* clause : {"5.1.1", "5.1.3", "5.1.5", "E1", "E2", "E3", "E7"})
        failures.push_back({clause, clause, failures.size(), "a refusal: corrupt", true});
    EXPECT_EQ(group_failures(failures).front().clause, "5.1.1");
    failures.push_back({"E10", "E10", 9, "a refusal: corrupt", true});
    EXPECT_EQ(group_failures(failures).front().clause, "contract-records");
}

TEST(TellingTest, AClauseThatTheFaultNamesComesBeforeAsManyThatTheCaseNames) {
    EXPECT_THAT(rank({{"5.1.6.1", "5.1.6.1", 5, "lost-wake-up", true},
                      {"5.1.5", "5.1.5", 5, "lost-wake-up", true},
                      {"E2", "E2", 90}}),
                ElementsAre(2, 0, 1));
}

TEST(TellingTest, WhatExplainsMoreComesFirst) {
    EXPECT_THAT(rank({{"E2", "E2", 5}, {"E3", "E3", 90}, {"E3", "E3", 70}}), ElementsAre(2, 0, 1));
}

TEST(TellingTest, TheBestOfEachClauseComesFirst) {
    // E3 was found by two cases that were made for it, E10 by one, 5.1.1 by none.
    EXPECT_THAT(rank({{"5.1.2", "5.1.1", 1},
                      {"E10", "E10", 1},
                      {"E3", "E3", 20},
                      {"E3", "E3", 10},
                      {"5.1.8.2", "E10", 1}}),
                ElementsAre(3, 1, 0, 2, 4));
}

}  // namespace
}  // namespace kmes::conformance
