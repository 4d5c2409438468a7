// SPDX-License-Identifier: MIT
//
// The clause table obeys its rules for the real cases and the real broken testees. For each rule a
// test breaks it and expects a report.
#include "conformance/clauses/clauses.h"
#include "conformance/cases/registry.h"

#include <gtest/gtest.h>

#include <iostream>
#include <sstream>
#include <string>

namespace kmes::conformance {
namespace {

TEST(ClauseTable, EveryClauseHasACaseAndEveryCaseABrokenTestee) {
    std::vector<std::string> elsewhere;
    for (const BrokenTestee& each : broken_testees_also_failed())
        elsewhere.emplace_back(each.case_id);
    for (const std::string& fault : find_faults(all_clauses(), all_cases(), all_broken_testees(),
                                                cases_without_broken(), elsewhere))
        ADD_FAILURE() << fault;
    for (const Clause& clause : all_clauses()) {
        if (clause.cases.empty())
            std::cout << clause.reference << ": no case: " << clause.reason << "\n";
    }
    for (const CaseWithoutBroken& each : cases_without_broken())
        std::cout << each.case_id << ": no broken testee: " << each.reason << "\n";
}

TEST(ClauseTable, IsPrintedWhole) {
    std::ostringstream out;
    print_clauses(out);
    for (const Clause& clause : all_clauses())
        EXPECT_NE(out.str().find(clause.text), std::string::npos) << clause.reference;
    for (const Case& each : all_cases())
        EXPECT_NE(out.str().find(each.id), std::string::npos) << each.id;
    for (const BrokenTestee& each : all_broken_testees()) {
        if (each.case_id.starts_with("-")) continue;
        EXPECT_NE(out.str().find(each.wrong), std::string::npos) << each.name;
    }
}

Case a_case(std::string_view id) {
    return {id, Level::must, "a title", "a description", "an expectation", nullptr};
}

// Valid tables, of which each test breaks one thing.
struct Tables {
    std::vector<Clause> clauses = {{"5.1.1", "one", {"5.1.1/a"}},
                                   {"E1", "two", {"5.1.1/a", "E1/b"}},
                                   {"E5", "three", {}, "the producer's"}};
    std::vector<Case> cases = {a_case("5.1.1/a"), a_case("E1/b"), a_case("E1/c")};
    std::vector<BrokenTestee> broken = {{"first", "5.1.1/a", "is wrong."},
                                        {"second", "- for a reason", "is wrong."}};
    std::vector<CaseWithoutBroken> without = {{"E1/b", "nobody can"}};
    std::vector<std::string> elsewhere = {"E1/c"};

    Tables() { clauses[1].cases.push_back("E1/c"); }
    std::string faults() const {
        std::string text;
        for (const std::string& fault : find_faults(clauses, cases, broken, without, elsewhere))
            text += fault + "\n";
        return text;
    }
};

TEST(ClauseTable, SoundTablesHaveNoFault) {
    EXPECT_EQ(Tables().faults(), "");
}

TEST(ClauseTable, SeesAClauseWithoutACase) {
    Tables tables;
    tables.clauses[2].reason = "";
    EXPECT_EQ(tables.faults(), "E5 has neither a case nor a reason\n");
}

TEST(ClauseTable, SeesAReasonBesideACase) {
    Tables tables;
    tables.clauses[0].reason = "none can";
    EXPECT_EQ(tables.faults(), "5.1.1 has cases, and a reason why it has none\n");
}

TEST(ClauseTable, SeesAClauseTwiceAndACaseTwice) {
    Tables tables;
    tables.clauses[2].reference = "E1";
    tables.clauses[0].cases.push_back("5.1.1/a");
    EXPECT_EQ(tables.faults(),
              "5.1.1 names 5.1.1/a twice\n5.1.1 names 5.1.1/a twice\n"
              "E1 is in the table twice\n");
}

TEST(ClauseTable, SeesACaseInNoClause) {
    Tables tables;
    tables.clauses[1].cases.pop_back();
    EXPECT_EQ(tables.faults(), "E1/c is in no clause\n");
}

TEST(ClauseTable, SeesACaseThatIsNotThere) {
    Tables tables;
    tables.clauses[0].cases.push_back("5.1.1/gone");
    EXPECT_EQ(tables.faults(), "5.1.1 names 5.1.1/gone, which is no case\n");
}

TEST(ClauseTable, SeesACaseWithoutABrokenTestee) {
    Tables tables;
    tables.broken.erase(tables.broken.begin());
    EXPECT_EQ(tables.faults(), "5.1.1/a fails no broken testee, and has no reason\n");
}

TEST(ClauseTable, SeesABrokenTesteeOfACaseThatIsNotThere) {
    Tables tables;
    tables.broken.push_back({"third", "5.1.1/gone", "is wrong."});
    EXPECT_EQ(tables.faults(),
              "the broken testee third is meant for 5.1.1/gone, which is no case\n");
}

TEST(ClauseTable, SeesAReasonThatIsNotNeededAnyMore) {
    Tables tables;
    tables.broken.push_back({"third", "E1/b", "is wrong."});
    EXPECT_EQ(tables.faults(), "E1/b fails a broken testee, and has a reason why it fails none\n");
}

TEST(ClausesWithoutACase, HaveAReason) {
    EXPECT_EQ(why_no_case("E5"), "E5 concerns only the producer, so no case can show it");
    EXPECT_EQ(why_no_case("E25").substr(0, 15), "E25 has no case");
    EXPECT_TRUE(why_no_case("contract-5").starts_with("contract-5 has no case: "));
    EXPECT_EQ(why_no_case("E6"),
              "E6 has no case of its own; these show it: 5.1.8.1-5/torn-in-the-middle, "
              "5.1.8.1-5/torn-at-the-end");
    EXPECT_EQ(why_no_case("5.1.10"),
              "5.1.10 has no case: x86-64 orders loads by itself, so a relaxed load cannot fail "
              "here");
    for (int erratum = 1; erratum <= 26; ++erratum)
        EXPECT_NE(why_no_case("E" + std::to_string(erratum)), "") << erratum;
    EXPECT_NE(why_no_case("contract-records"), "");
    for (const char* unknown : {"", "E27", "E", "5.1.10-1", "contract-6"})
        EXPECT_EQ(why_no_case(unknown), "");
}

}  // namespace
}  // namespace kmes::conformance
