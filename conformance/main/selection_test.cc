// SPDX-License-Identifier: MIT
//
// Tests of the choice of cases: which ones run, which ones are listed and explained, in which
// order.
#include "conformance/main/selection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/main/shell.h"

namespace kmes::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

TEST(Program, RunsWhatIsUpToTheLevel) {
    Shell shell;
    EXPECT_EQ(shell.test(), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.5/maps", "5.1.8.3/checks", "E21/twice"));
    EXPECT_EQ(shell.test({"--level", "must"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.5/maps"));
    EXPECT_EQ(shell.test({"--level", "robust"}), 0);
    EXPECT_EQ(shell.ran.size(), 4u);
    EXPECT_EQ(shell.error.str(), "");
}

TEST(Program, TakesTheFormerIdOfACase) {
    Shell shell;
    shell.cases[1].former_id = "5.1.8.3/looks";
    EXPECT_EQ(shell.test({"--filter", "5.1.8.3/looks"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.8.3/checks"));
    EXPECT_EQ(shell.test({"--filter", "*/looks"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.8.3/checks"));
    EXPECT_EQ(shell.test({"--without", "5.1.8.3/looks"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.5/maps", "E21/twice"));
    EXPECT_EQ(shell.run({"--explain", "5.1.8.3/looks"}), 0);
    EXPECT_THAT(shell.out.str(), HasSubstr("5.1.8.3/checks\nformer id:   5.1.8.3/looks\n"));
    EXPECT_EQ(shell.run({"--explain", "5.1.5/maps"}), 0);
    EXPECT_THAT(shell.out.str(), Not(HasSubstr("former id")));
    const Folder folder;
    const std::string list = folder.file("list");
    write_file(list, "5.1.8.3/looks a reason\n");
    shell.fail_case("5.1.8.3/checks", Verdict::unsupported);
    EXPECT_EQ(shell.test({"--expect-unsupported", list}), 0);
    EXPECT_EQ(shell.error.str(), "");
}

TEST(Program, LeavesOutWhatIsNotAskedFor) {
    Shell shell;
    shell.cases[0].demand = Demand::explored;
    shell.cases[1].demand = Demand::shared;
    shell.cases[2].demand = Demand::soak;
    shell.cases.push_back(case_of("E1/always", Level::must));
    EXPECT_EQ(shell.test(), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.5/maps", "E1/always"));
    EXPECT_EQ(shell.test({"--explore", "off"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("E1/always"));
    EXPECT_EQ(shell.test({"--shared", "--soak", "5"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.5/maps", "5.1.8.3/checks", "E21/twice", "E1/always"));
    // If a pattern selects only such cases, the error names the option that they need.
    EXPECT_EQ(shell.test({"--filter", "5.1.8.3/*"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("cases that need another option; add --shared"));
    EXPECT_EQ(shell.test({"--filter", "E21/*"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("add --soak SECONDS"));
    EXPECT_EQ(shell.test({"--filter", "5.1.5/*", "--explore", "off"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("add --explore quick"));
    shell.cases[2].demand = Demand::stream;
    EXPECT_EQ(shell.test({"--filter", "E21/*"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("add --stream FILE"));
    EXPECT_EQ(shell.test({"--filter", "E21/*", "--stream", "events"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("E21/twice"));
}

TEST(Program, RefusesToAskForWhatIsLeftOut) {
    Shell shell;
    shell.cases[1].demand = Demand::shared;
    shell.cases[1].level = Level::robust;
    shell.cases[2].demand = Demand::soak;
    shell.cases[2].level = Level::robust;
    EXPECT_EQ(shell.test({"--shared", "--level", "erratum"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("--shared adds cases of the level robust, which "
                                             "--level erratum excludes"));
    EXPECT_EQ(shell.test({"--soak", "5", "--level", "must"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("--soak SECONDS adds cases of the level robust"));
    EXPECT_EQ(shell.test({"--soak", "5", "--level", "robust", "--filter", "5.1.5/*"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("no --filter includes; --filter \"E21/twice\" does"));
    EXPECT_THAT(shell.ran, IsEmpty());
    shell.cases[2].demand = Demand::stream;
    EXPECT_EQ(shell.test({"--stream", "x", "--level", "robust", "--filter", "5.1.5/*"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("--stream FILE adds cases that no --filter includes"));
    EXPECT_THAT(shell.ran, IsEmpty());
    // --shared is permitted with any filters, because it asks for no time.
    EXPECT_EQ(shell.test({"--shared", "--level", "robust", "--filter", "5.1.5/*"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.5/maps"));
}

TEST(Program, DebugsOneCaseOfAnyLevel) {
    Shell shell;
    shell.cases[3].demand = Demand::shared;
    EXPECT_EQ(shell.test({"--debug", "E7/torn-size", "--explore", "off"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("E7/torn-size"));
    EXPECT_TRUE(shell.last_settings.debug);
    EXPECT_TRUE(shell.last_settings.shared);
    EXPECT_EQ(shell.test({"--debug", "E7/torn"}), 2);
    EXPECT_THAT(shell.error.str(),
                HasSubstr("there is no case \"E7/torn\"; nearest: E7/torn-size"));
    Shell clause;
    EXPECT_EQ(clause.test({"--explain", "E7"}), 2);
    EXPECT_THAT(clause.error.str(), HasSubstr("E7 is a clause, and no case; its cases: E7/torn-"));
    shell.cases[3].demand = Demand::soak;
    EXPECT_EQ(shell.test({"--debug", "E7/torn-size"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("also needs --soak SECONDS"));
    shell.cases[3].demand = Demand::stream;
    EXPECT_EQ(shell.test({"--debug", "E7/torn-size"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("also needs --stream FILE"));
}

TEST(Program, ShufflesTheCasesTheSameWayForTheSameSeed) {
    std::set<std::vector<std::string>> orders;
    for (int seed = 1; seed <= 30; ++seed) {
        Shell shell;
        EXPECT_EQ(shell.test({"--shuffle", std::to_string(seed)}), 0);
        EXPECT_THAT(shell.ran, UnorderedElementsAre("5.1.5/maps", "5.1.8.3/checks", "E21/twice"));
        Shell again;
        EXPECT_EQ(again.test({"--shuffle", std::to_string(seed)}), 0);
        EXPECT_EQ(again.ran, shell.ran);
        orders.insert(shell.ran);
    }
    EXPECT_EQ(orders.size(), 6u);
}

TEST(Program, CallsAFilterThatMatchesNothingBadUsage) {
    Shell shell;
    EXPECT_EQ(shell.test({"--filter", "E21/twise"}), 2);
    EXPECT_THAT(shell.ran, IsEmpty());
    EXPECT_THAT(shell.error.str(), HasSubstr("--filter \"E21/twise\" matches no case"));
    EXPECT_THAT(shell.error.str(), HasSubstr("(nearest: E21/twice)"));
    // A name that is far from all others is given no neighbours.
    EXPECT_EQ(shell.test({"--filter", "xyzzy"}), 2);
    EXPECT_THAT(shell.error.str(), Not(HasSubstr("nearest")));
    EXPECT_EQ(shell.test({"--filter", "E21"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("(E21 is a clause: 'E21/*' matches its cases)"));
    // A pattern that matches nothing is reported, even if another one matches.
    EXPECT_EQ(shell.test({"--filter", "E21/*", "--filter", "E99/*"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("E99/*"));
    EXPECT_EQ(shell.test({"--filter", "E7/*"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("above the level erratum; --level robust includes"));
}

TEST(Program, FiltersByPattern) {
    Shell shell;
    EXPECT_EQ(shell.test({"--filter", "E*", "--filter", "*maps"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.5/maps", "E21/twice"));
    EXPECT_EQ(shell.test({"--filter", "5.1.?.3/*"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.8.3/checks"));
}

TEST(Program, LeavesOutByPattern) {
    Shell shell;
    EXPECT_EQ(shell.test({"--without", "5.1.8.3/*"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.5/maps", "E21/twice"));
    EXPECT_EQ(shell.test({"--filter", "5*", "--without", "*maps"}), 0);
    EXPECT_THAT(shell.ran, ElementsAre("5.1.8.3/checks"));
    EXPECT_EQ(shell.test({"--filter", "5*", "--without", "E21/*"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("--without \"E21/*\" matches only cases that would"));
    EXPECT_EQ(shell.test({"--without", "E21/twise"}), 2);
    EXPECT_THAT(shell.error.str(),
                HasSubstr("matches no case; --list prints them all (nearest: E21/t"));
    EXPECT_EQ(shell.test({"--filter", "E21/*", "--without", "E*"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("--without leaves no case to run"));
}

TEST(Program, ListsCases) {
    Shell shell;
    EXPECT_EQ(shell.run({"--list"}), 0);
    EXPECT_EQ(shell.out.str(),
              "5.1.5/maps      must     a title\n"
              "5.1.8.3/checks  should   a title\n"
              "E21/twice       erratum  a title\n"
              "E7/torn-size    robust   a title\n");
    EXPECT_EQ(shell.run({"--list", "--level", "must"}), 0);
    EXPECT_EQ(shell.out.str(), "5.1.5/maps  must     a title\n");
    EXPECT_EQ(shell.run({"--list", "--filter", "nothing"}), 2);
    // A default run has the first of these, and not the others.
    shell.cases[0].demand = Demand::explored;
    shell.cases[1].demand = Demand::holes;
    shell.cases[3].demand = Demand::shared;
    EXPECT_EQ(shell.run({"--list"}), 0);
    EXPECT_EQ(shell.out.str(),
              "5.1.5/maps      must     a title\n"
              "5.1.8.3/checks  should   a title (--layout D)\n"
              "E21/twice       erratum  a title\n"
              "E7/torn-size    robust   a title (--shared)\n");
}

TEST(Program, ExplainsACase) {
    Shell shell;
    EXPECT_EQ(shell.run({"--explain", "E7/torn-size"}), 0);
    EXPECT_EQ(shell.out.str(),
              "E7/torn-size\n\nlevel:       robust\nclause:      E7\ntitle:       a title\n\n"
              "what is done: what is done\n\nwhat is right: what is right\n");
    EXPECT_EQ(shell.run({"--explain", "torn"}), 2);
    EXPECT_EQ(shell.error.str().rfind("kmes-conformance: there is no case \"torn\"; nearest: "
                                      "E7/torn-size\n",
                                      0),
              0u);
}

// The pattern must not match another clause that begins with the same letters.
TEST(Program, FiltersTheCasesOfOneClause) {
    Shell shell;
    const std::vector<std::string> ids = {"E1/a", "E1/b", "E1/c", "E1/d", "E1/e", "E10/f", "E11/g"};
    shell.cases.clear();
    for (const std::string& id : ids) shell.cases.push_back(case_of(id, Level::erratum));
    shell.cases[5].other_clause = shell.cases[6].other_clause = "E1";
    EXPECT_EQ(shell.run({"--explain", "E1"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("and 1 more (--list --filter 'E1/*')"));
}

TEST(Program, NamesTheCasesOfAPatternInThePlaceOfACase) {
    Shell shell;
    for (const char* id : {"E7/a", "E7/b", "E7/c", "E7/d", "E7/e", "E7/f"})
        shell.cases.push_back(case_of(id, Level::robust));
    EXPECT_EQ(shell.test({"--debug", "E7/*"}), 2);
    EXPECT_THAT(shell.error.str(),
                HasSubstr("E7/* is a pattern, and no case; its cases: E7/torn-size, E7/a, E7/b, "
                          "E7/c, E7/d, E7/e, and 1 more (--list --filter 'E7/*')\n"));
    EXPECT_EQ(shell.run({"--explain", "*/m*"}), 2);
    EXPECT_THAT(shell.error.str(),
                HasSubstr("*/m* is a pattern, and no case; its cases: 5.1.5/maps\n"));
    EXPECT_EQ(shell.test({"--debug", "E99/*"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("there is no case \"E99/*\""));
}

TEST(Program, NamesTheCasesOfThePartsOfAClause) {
    Shell shell;
    EXPECT_EQ(shell.run({"--explain", "5.1.8"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("5.1.8 is a clause, and no case; its cases: "
                                             "5.1.8.3/checks"));
    EXPECT_EQ(shell.run({"--explain", "5.1"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("its cases: 5.1.5/maps, 5.1.8.3/checks"));
    EXPECT_EQ(shell.run({"--explain", "xyzzy"}), 2);
    EXPECT_THAT(shell.error.str(), HasSubstr("no case \"xyzzy\"; --list prints them all"));
}

TEST(Program, FindsMistakesInTheListOfCases) {
    Shell shell;
    shell.cases.push_back(shell.cases[0]);
    EXPECT_EQ(shell.test(), 3);
    EXPECT_THAT(shell.error.str(), HasSubstr("5.1.5/maps is in it twice"));
}

TEST(CheckCases, WantsAFormerIdOnce) {
    std::vector<Case> cases = {case_of("5.1.5/maps", Level::must), case_of("E1/x", Level::must)};
    cases[1].former_id = "E1/y";
    EXPECT_EQ(check_cases(cases), "");
    cases[1].former_id = "5.1.5/maps";
    EXPECT_EQ(check_cases(cases), "5.1.5/maps, the former id of E1/x, is in it twice");
}

TEST(CheckCases, WantsIdsTextsAndAFunction) {
    EXPECT_EQ(check_cases(few_cases()), "");
    EXPECT_EQ(check_cases({}), "it is empty");
    for (const std::string_view id : {"maps", "/maps", "5.1.5/", "5.1.5/Maps", "5.1.5/a b",
                                      "5.1.5/a/b", "5 1/maps", "5.1.5/maps_all"}) {
        EXPECT_THAT(check_cases({case_of(id, Level::must)}), HasSubstr("is no id"));
    }
    Case without = case_of("a/b", Level::must);
    without.title = "";
    EXPECT_EQ(check_cases({without}), "a/b has no title");
    without = case_of("a/b", Level::must);
    without.run = nullptr;
    EXPECT_EQ(check_cases({without}), "a/b has no function");
}

TEST(NearestIds, PutsWhatContainsTheNameFirst) {
    const std::vector<Case> cases = few_cases();
    EXPECT_EQ(nearest_ids(cases, "checks", 1)[0], "5.1.8.3/checks");
    EXPECT_EQ(nearest_ids(cases, "E12/twice", 1)[0], "E21/twice");
    EXPECT_EQ(nearest_ids(cases, "", 2).size(), 2u);
    EXPECT_EQ(nearest_ids({}, "x").size(), 0u);
}

}  // namespace
}  // namespace kmes::conformance
