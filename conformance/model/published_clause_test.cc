// SPDX-License-Identifier: MIT
#include "conformance/model/published_clause.h"

#include <gtest/gtest.h>

namespace kmes::conformance {
namespace {

TEST(PublishedClause, CountsTheSectionsOfFormsBAndC) {
    for (const char* form : {"B", "C"}) {
        EXPECT_EQ(published_clause("5.1.8.1-5", form), "5.1.9.1 step 5");
        EXPECT_EQ(published_clause("5.1.8.1-6", form), "5.1.9.1 step 7");
        EXPECT_EQ(published_clause("5.1.8.2-6", form), "5.1.9.2 step 6");
        EXPECT_EQ(published_clause("5.1.8.3-2", form), "5.1.9.3 step 2");
        EXPECT_EQ(published_clause("5.1.7-5", form), "5.1.8 step 5");
        EXPECT_EQ(published_clause("5.1.9", form), "5.1.10");
        EXPECT_EQ(published_clause("5.1.6.3", form), "5.1.6.3 and 5.1.7");
        EXPECT_EQ(published_clause("E7", form), "5.1.9.1 step 6");
        EXPECT_EQ(published_clause("event-model", form), "2.1");
    }
}

TEST(PublishedClause, QuotesTheTitlesOfFormD) {
    EXPECT_EQ(published_clause("5.1.8.1-5", "D"), "Consumer Protocol, Draining, step 5");
    EXPECT_EQ(published_clause("5.1.8.1-6", "D"), "Consumer Protocol, Draining, step 7");
    EXPECT_EQ(published_clause("5.1.8.3-2", "D"), "Consumer Protocol, Buffer replacement, step 3");
    EXPECT_EQ(published_clause("5.1.8.3", "stream"), "Consumer Protocol, Buffer replacement");
    EXPECT_EQ(published_clause("E10", "D"), "Consumer Protocol, Buffer replacement, step 2");
    EXPECT_EQ(published_clause("E17", "D"), "Consumer Protocol, Notification wait");
}

TEST(PublishedClause, IsEmptyWhereTheDocumentHasNone) {
    EXPECT_EQ(published_clause("E1", "D"), "");
    EXPECT_EQ(published_clause("E3", "B"), "");
    EXPECT_EQ(published_clause("E17", "C"), "");
    EXPECT_EQ(published_clause("5.1.7-5", "D"), "");
    EXPECT_EQ(published_clause("contract-1", "D"), "");
    EXPECT_EQ(published_clause("contract-records", "D"), "");
    EXPECT_EQ(published_clause("", "D"), "");
}

TEST(PublishedClause, IsEmptyInFormA) {
    EXPECT_EQ(published_clause("5.1.8.1-5", ""), "");
    EXPECT_EQ(published_clause("5.1.8.1-5", "A"), "");
    EXPECT_EQ(published_clause("5.1.8.1-5", "nobody"), "");
}

TEST(PublishedPlace, SaysThatTheContractIsNotPublished) {
    for (const char* clause : {"contract", "contract-1", "contract-records"}) {
        EXPECT_EQ(published_place(clause, "D"),
                  "none; the published documents have no contract for testees");
        EXPECT_EQ(published_place(clause, "A"), "");
        EXPECT_EQ(published_place(clause, ""), "");
    }
    EXPECT_EQ(published_place("E1", "D"), "");
    EXPECT_EQ(published_place("5.1.8.1-5", "B"), "5.1.9.1 step 5");
}

}  // namespace
}  // namespace kmes::conformance
