// SPDX-License-Identifier: MIT
//
// Which failure is shown first.
#include "conformance/main/failure_groups.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/main/symptom.h"

namespace kmes::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::size_t> rank(const std::vector<FailedCase>& failures) {
    return rank_failures(group_failures(failures, {}));
}

TEST(FailureGroupsTest, NothingFailed) {
    EXPECT_THAT(rank({}), IsEmpty());
}

TEST(FailureGroupsTest, WhatWasMadeForItComesBeforeWhatFailedByAccident) {
    EXPECT_THAT(rank({{"E10", "E3", 5}, {"E3", "E3", 40}, {"5.1.8.2", "E3", 3}}),
                ElementsAre(1, 2, 0));
}

TEST(FailureGroupsTest, ASimplerScenarioComesFirst) {
    EXPECT_THAT(rank({{"E3", "E3", 80'000}, {"E3", "E3", 12}}), ElementsAre(1, 0));
}

TEST(FailureGroupsTest, TheSameCountIsInTheOrderOfTheRun) {
    EXPECT_THAT(rank({{"E3", "E3", 12}, {"E3", "E3", 12}}), ElementsAre(0, 1));
}

TEST(FailureGroupsTest, AStepOfAClauseIsNearIt) {
    const FailedCase near{"5.1.8.1-5", "5.1.8.1", 90};
    const FailedCase far{"5.1.8.2-5", "5.1.8.1", 10};
    EXPECT_TRUE(is_better_evidence(near, far));
    EXPECT_FALSE(is_better_evidence(far, near));
    EXPECT_TRUE(is_better_evidence({"5.1.8.1", "5.1.8.1-5", 90}, far));
}

TEST(FailureGroupsTest, ANumberIsNoPartOfALongerOne) {
    const FailedCase other{"E10", "E1", 1};
    const FailedCase far{"5.1.1", "E1", 0};
    EXPECT_FALSE(is_better_evidence(other, far));
}

// A crash has one reason, whatever the cases test: the clearest of them gives the clause.
TEST(FailureGroupsTest, OneCauseIsOneGroupWhateverItsCasesTest) {
    const std::vector<FailedCase> failures = {{"E1", "E1", 500, "signal 6", true},
                                              {"5.1.1", "5.1.1", 20, "signal 6", true},
                                              {"E10", "E10", 90, "signal 6", true},
                                              {"E3", "E3", 10, "exit status 3", true}};
    const std::vector<FailureGroup> groups = group_failures(failures, {});
    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0].clause, "5.1.1");
    EXPECT_THAT(groups[0].members, ElementsAre(1, 2, 0));
    EXPECT_EQ(groups[1].clause, "E3");
}

// Whatever the cases test, a wrong mapping is clearest in the simplest of them.
TEST(FailureGroupsTest, AFaultThatLooksTheSameEverywhereIsShownByTheSimplestCase) {
    EXPECT_THAT(rank({{"contract-2", "contract-2", 200, "wrong-mapping"},
                      {"5.1.5", "contract-2", 0, "wrong-mapping"}}),
                ElementsAre(1, 0));
}

TEST(FailureGroupsTest, ASymptomInCasesOfManyClausesIsOfNoneOfThem) {
    std::vector<FailedCase> failures;
    for (const char* clause : {"5.1.1", "5.1.3", "5.1.5", "E1", "E2", "E3", "E7"})
        failures.push_back({clause, clause, failures.size(), "a refusal: corrupt", true});
    EXPECT_EQ(group_failures(failures, {}).front().clause, "5.1.1");
    failures.push_back({"E10", "E10", 9, "a refusal: corrupt", true});
    EXPECT_EQ(group_failures(failures, {}).front().clause, "contract-records");
}

TEST(FailureGroupsTest, AClauseThatTheFaultNamesComesBeforeAsManyThatTheCaseNames) {
    EXPECT_THAT(rank({{"5.1.6.1", "5.1.6.1", 5, "lost-wake-up", true},
                      {"5.1.5", "5.1.5", 5, "lost-wake-up", true},
                      {"E2", "E2", 90}}),
                ElementsAre(2, 0, 1));
}

// The consumer sleeps on a retired buffer (E3), but only if generation jumps: the cases of E3 pass.
TEST(FailureGroupsTest, AClauseThatItsOwnCasesFoundKeptIsThatOfTheScenario) {
    const std::vector<FailedCase> failures = {
        {"E15", "E3", 70}, {"E15", "E3", 60}, {"E15", "E15", 80}, {"E15", "E3", 90}};
    EXPECT_EQ(group_failures(failures, {}).front().clause, "E3");
    const std::vector<FailureGroup> groups = group_failures(failures, {{"E3", 1}});
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(groups[0].clause, "E15");
    EXPECT_THAT(groups[0].members, ElementsAre(1, 0, 2, 3));
}

TEST(FailureGroupsTest, AClauseThatCasesOfSeveralOthersFindBrokenStays) {
    EXPECT_EQ(group_failures({{"E15", "E3", 70}, {"E19", "E3", 60}}, {{"E3", 1}}).front().clause,
              "E3");
    EXPECT_EQ(group_failures({{"5.1.8.2-2", "5.1.8.2", 70}}, {{"5.1.8.2", 1}}).front().clause,
              "5.1.8.2");
}

TEST(FailureGroupsTest, MostOfTheScenariosSayWhatTheyAreOf) {
    const std::vector<FailedCase> most = {
        {"E3", "5.1.8.3", 7}, {"E3", "5.1.8.3", 6}, {"E1", "5.1.8.3", 5}};
    EXPECT_EQ(group_failures(most, {{"5.1.8.3", 1}}).front().clause, "E3");
    EXPECT_EQ(group_failures(most, {{"E3", 1}}).front().clause, "5.1.8.3");
}

// The explorer finds the mapping that E14 is about, too. Its case was made for no scenario.
TEST(FailureGroupsTest, ASearchDoesNotSayWhichScenarioBreaksAClause) {
    const std::vector<FailedCase> failures = {
        {"E14", "contract-2", 9, "wrong-mapping"},
        {"5.1.8", "contract-2", 90, "wrong-mapping", false, true}};
    const std::vector<FailureGroup> groups = group_failures(failures, {{"contract-2", 4}});
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(groups[0].clause, "E14");
    EXPECT_THAT(groups[0].members, ElementsAre(0, 1));
    EXPECT_EQ(group_failures({failures[1]}, {{"contract-2", 4}}).front().clause, "contract-2")
        << "no other case says it";
}

// A sleep on an old event has the clause of any case. All cases of E15 fail, and some of E10 pass.
TEST(FailureGroupsTest, AnAssumedClauseIsOneThatIsBrokenInAllItsCases) {
    const std::string cause = "a sleep on an old event";
    const std::vector<FailedCase> failures = {{"E10", "E10", 1, cause, true},
                                              {"E9", "E9", 2, cause, true},
                                              {"E15", "E15", 4, cause, true},
                                              {"E15", "E15", 3, cause, true}};
    const std::vector<FailureGroup> groups = group_failures(failures, {{"E10", 1}});
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(groups[0].clause, "E15");
    EXPECT_THAT(groups[0].members, ElementsAre(3, 2, 1, 0));
}

// The same finding names E10 in a case of E21, and names no other clause in its own cases.
TEST(FailureGroupsTest, AFaultThatNamesItsClauseElsewhereNamesItInItsOwnCases) {
    const std::string cause = "an event that is passed over";
    const std::vector<FailureGroup> groups =
        group_failures({{"E21", "E10", 5, cause}, {"E10", "E10", 9, cause, true}}, {});
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_THAT(groups[0].members, ElementsAre(1, 0));
}

// The finding names 5.1.4 if the event crosses the end, but the cases of 5.1.4 pass.
TEST(FailureGroupsTest, ANamedClauseThatItsCasesKeepGivesWayToTheCause) {
    const std::string cause = "a record with another payload length";
    const std::vector<FailedCase> failures = {{"E2", "5.1.4", 5, cause},
                                              {"E10", "5.1.4", 6, cause},
                                              {"5.1.7-5", "5.1.7-5", 9, cause, true}};
    const std::vector<FailureGroup> groups =
        group_failures(failures, {{"5.1.4", 2}, {"E2", 5}, {"E10", 5}});
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(groups[0].clause, "5.1.7-5");
    EXPECT_EQ(group_failures(failures, {}).front().clause, "5.1.4");
}

TEST(FailureGroupsTest, AnAssumedClauseIsTheOneWithTheLargestPartOfItsCases) {
    const std::string cause = "a refusal: corrupt";
    const std::vector<FailedCase> failures = {{"E3", "E3", 1, cause, true},
                                              {"E3", "E3", 2, cause, true},
                                              {"E7", "E7", 3, cause, true},
                                              {"E7", "E7", 4, cause, true},
                                              {"E9", "E9", 5, cause, true}};
    const PassedCases passed = {{"E3", 10}, {"E7", 3}, {"E9", 1}};
    EXPECT_THAT(group_failures(failures, passed).front().members, ElementsAre(2, 3, 0, 1, 4));
}

// An event twice: the largest scenario is the first of its clause.
TEST(FailureGroupsTest, ALongRunComesAfterShortOnes) {
    const std::vector<FailedCase> failures = {{"E21", "E21", 5, "", false, false, 308'844},
                                              {"5.1.5", "E21", 2, "", false, false, 103},
                                              {"E21", "E21", 7, "", false, false, 4'000},
                                              {"E21", "E21", 9, "", false, false, 275}};
    EXPECT_THAT(rank(failures), ElementsAre(3, 2, 1, 0));
}

// One trace shows that the consumer uses the capacity of another buffer.
TEST(FailureGroupsTest, AReasonThatATraceShowsIsTheReasonOfItsSymptom) {
    const std::string cause = "a refusal: corrupt";
    std::vector<FailedCase> failures = {{"E10", "E10", 4, cause, true},
                                        {"E10", "E10", 5, cause, true},
                                        {"5.1.8.3", "5.1.8.3", 3, cause, true},
                                        {"E20", "E20", 6, "signal 11 in copy", true}};
    EXPECT_EQ(group_failures(failures, {}).front().clause, "E10");
    failures[2].root = kCapacityOfAnotherBuffer;
    const std::vector<FailureGroup> groups = group_failures(failures, {});
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(groups[0].clause, "5.1.8.3");
    EXPECT_THAT(groups[0].members, ElementsAre(2, 0, 1, 3));
}

// The finding names E10, because the event is in a retired buffer; but the order is that of E24.
TEST(FailureGroupsTest, AnEventThatIsPassedOverIsOfTheClauseThatAllItsCasesFindBroken) {
    const std::string cause = "an event that is passed over";
    const std::vector<FailedCase> failures = {{"E10", "E10", 1, cause, true},
                                              {"E24", "E10", 2, cause},
                                              {"E24", "E10", 3, cause},
                                              {"E24", "E10", 4, cause}};
    const std::vector<FailureGroup> groups = group_failures(failures, {{"E10", 5}});
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(groups[0].clause, "E24");
    EXPECT_THAT(groups[0].members, ElementsAre(1, 2, 3, 0));
    EXPECT_EQ(group_failures(failures, {{"E10", 5}, {"E24", 1}}).front().clause, "E10");
    EXPECT_EQ(group_failures(failures, {}).front().clause, "E10");
}

TEST(FailureGroupsTest, AnExitIsClearestInACaseAboutTheEnd) {
    const std::string cause = "exit status 0";
    EXPECT_THAT(rank({{"5.1.5", "contract-4", 1, cause}, {"contract-4", "contract-4", 9, cause}}),
                ElementsAre(1, 0));
}

TEST(FailureGroupsTest, OfSeveralExitsTheShortestRunIsShown) {
    const std::string cause = "exit status 0";
    const std::vector<FailedCase> failures = {
        {"5.1.6.2", "contract-4", 1, cause, false, false, 445},
        {"5.1.9", "contract-4", 2, cause, false, false, 23},
        {"E21", "contract-4", 9, cause, false, false, 10}};
    EXPECT_THAT(rank(failures), ElementsAre(1, 2, 0));
}

// No second load of tail_pos: the consumer delivers torn bytes, and refuses torn sizes.
TEST(FailureGroupsTest, ARefusalBesideTornEventsIsOfTheSameMistake) {
    const std::string cause = "a refusal: corrupt";
    std::vector<FailedCase> failures(5, FailedCase{"5.1.8.1-5", "5.1.8.1-5", 1});
    failures.push_back({"E7", "E7", 2, cause, true});
    ASSERT_EQ(group_failures(failures, {}).size(), 1u);
    EXPECT_EQ(group_failures(failures, {}).front().clause, "5.1.8.1-5");
    failures.back().cause = "a record with another type";
    EXPECT_EQ(group_failures(failures, {}).size(), 2u);
}

// The bounds of E7 are too strict, and the cases of E20 have large events, too.
TEST(FailureGroupsTest, ARefusalIsOfTheBoundsIfTheirCasesShowIt) {
    const std::string cause = "a refusal: corrupt";
    const std::vector<FailedCase> failures = {{"E20", "E20", 1, cause, true},
                                              {"E20", "E20", 5, cause, true},
                                              {"E7", "E7", 3, cause, true},
                                              {"E7", "E7", 9, cause, true}};
    EXPECT_THAT(rank_failures(group_failures(failures, {{"E20", 2}, {"E7", 30}})),
                ElementsAre(2, 3, 0, 1));
    const std::vector<FailedCase> once(failures.begin(), failures.end() - 1);
    EXPECT_EQ(group_failures(once, {{"E20", 2}, {"E7", 30}}).front().clause, "E20");
}

TEST(FailureGroupsTest, AFailureWhoseOtherFindingsNameTheReasonIsJoinedToIt) {
    std::vector<FailedCase> failures = {
        {"5.1.8.2-2", "5.1.8.2-2", 1}, {"5.1.8.2-2", "5.1.8.2-2", 2}, {"E2", "E2", 3}};
    EXPECT_EQ(group_failures(failures, {}).size(), 2u);
    failures[2].also = {"E1", "5.1.8.2-2"};
    const std::vector<FailureGroup> groups = group_failures(failures, {});
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_THAT(groups[0].members, ElementsAre(0, 1, 2));
}

TEST(FailureGroupsTest, FewFailuresWithTheSameCauseInOtherCasesAreASideEffect) {
    const std::string cause = "a sleep on an old event";
    std::vector<FailedCase> failures(5, FailedCase{"E2", "E2", 1, cause});
    failures.push_back({"5.1.1", "5.1.8.2-2", 7, cause});
    EXPECT_EQ(group_failures(failures, {}).size(), 1u);
    failures.back().case_clause = "5.1.8.2-2";
    EXPECT_EQ(group_failures(failures, {}).size(), 2u) << "the case made for it fails, too";
}

TEST(FailureGroupsTest, ASearchIsShownLast) {
    const std::vector<FailedCase> failures = {{"E20", "E20", 1, "", false, true},
                                              {"E2", "E20", 7},
                                              {"E3", "E3", 9},
                                              {"E3", "E3", 5, "", false, true}};
    EXPECT_THAT(rank(failures), ElementsAre(2, 1, 3, 0));
}

TEST(FailureGroupsTest, TheWholeContractSaysNoMoreThanAnAssumedClause) {
    EXPECT_THAT(rank({{"E2", "contract", 1, "write-outside"},
                      {"E7", "E7", 3, "signal 11 in copy", true},
                      {"E7", "E7", 4, "signal 11 in copy", true}}),
                ElementsAre(1, 0, 2));
}

// A torn size that is trusted: the case decides what the copy hits.
TEST(FailureGroupsTest, WrongAddressesInOneFunctionAreOneGroup) {
    const std::string crash = "signal 11 (Segmentation fault) in copy";
    std::vector<FailedCase> failures = {{"E7", "E7", 1, crash, true},
                                        {"E7", "E7", 2, crash, true},
                                        {"5.1.8.1-5", "contract", 3, "write-outside in copy"},
                                        {"E24", "E24", 4, crash + "; after a torn read", true}};
    const std::vector<FailureGroup> groups = group_failures(failures, {});
    ASSERT_EQ(groups.size(), 1u);
    EXPECT_EQ(groups.front().clause, "E7");
    failures[2].cause = "write-outside in mark_read";
    EXPECT_EQ(group_failures(failures, {}).size(), 2u);
    failures[2].cause = "write-outside";  // the place is not known
    EXPECT_EQ(group_failures(failures, {}).size(), 2u);
    failures[2].cause = "signal 6 (Aborted) in copy";
    EXPECT_EQ(group_failures(failures, {}).size(), 2u);
}

TEST(FailureGroupsTest, AnExitIsOfTheClauseThatSomeCaseHasSeen) {
    const std::vector<FailureGroup> groups =
        group_failures({{"contract-4", "contract-4", 1, "exit status 1"},
                        {"contract-4", "contract-4", 2, "exit status 1"},
                        {"contract-4", "contract-4", 4, "exit status 3"},
                        {"E2", "5.1.8.2-5", 9, "exit status 1"}},
                       {});
    ASSERT_EQ(groups.size(), 2u);
    EXPECT_EQ(groups[0].clause, "5.1.8.2-5");
    EXPECT_THAT(groups[0].members, ElementsAre(0, 1, 3));
    EXPECT_EQ(groups[1].clause, "contract-4");
}

TEST(FailureGroupsTest, WhatExplainsMoreComesFirst) {
    EXPECT_THAT(rank({{"E2", "E2", 5}, {"E3", "E3", 90}, {"E3", "E3", 70}}), ElementsAre(2, 0, 1));
}

TEST(FailureGroupsTest, OfTwoThatExplainAsMuchTheOneOfItsOwnCasesComesFirst) {
    EXPECT_THAT(rank({{"event-model", "contract-records", 1, "malformed-record"},
                      {"contract-3", "contract-3", 5, "malformed-record"}}),
                ElementsAre(1, 0));
}

TEST(FailureGroupsTest, TheBestOfEachClauseComesFirst) {
    // E3 was found by two cases made for it, E10 by one, and 5.1.1 by none.
    EXPECT_THAT(rank({{"5.1.2", "5.1.1", 1},
                      {"E10", "E10", 1},
                      {"E3", "E3", 20},
                      {"E3", "E3", 10},
                      {"5.1.8.2", "E10", 1}}),
                ElementsAre(3, 1, 0, 2, 4));
}

}  // namespace
}  // namespace kmes::conformance
