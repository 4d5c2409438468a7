// SPDX-License-Identifier: MIT
//
// Tests of the failures that are drawn, and of their number.
#include "conformance/main/drawings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "conformance/failure/failure_file.h"
#include "conformance/main/report_shell.h"
#include "conformance/main/shell.h"
#include "conformance/model/run_record.h"

namespace kmes::conformance {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A case that found this clause broken, after this many steps.
CaseOutcome failure_after(int steps, const std::string& clause) {
    auto record = std::make_shared<RunRecord>();
    record->findings.emplace_back();
    for (int i = 0; i < steps; ++i) {
        TimelineStep step;
        step.text = "step " + std::to_string(i) + " of " + clause;
        record->timeline.add(std::move(step));
    }
    CaseOutcome outcome{Verdict::fail, clause, "wrong", ""};
    outcome.record = std::move(record);
    return outcome;
}

TEST(Program, DrawsTheFailuresThatTellMostWhateverRanFirst) {
    Shell shell;
    shell.cases = {case_of("E10/one", Level::erratum), case_of("E10/two", Level::erratum),
                   case_of("E10/three", Level::erratum), case_of("E10/four", Level::erratum),
                   case_of("E3/meant", Level::erratum)};
    shell.act = [](const Case& the_case) {
        return failure_after(the_case.id == "E10/one" ? 40 : 20, "E3");
    };
    EXPECT_EQ(shell.test(), 1);
    // Each case runs; then the drawn one runs again, with every access recorded.
    EXPECT_THAT(shell.ran,
                ElementsAre("E10/one", "E10/two", "E10/three", "E10/four", "E3/meant", "E3/meant"));
    EXPECT_TRUE(shell.last_settings.record_accesses);
    EXPECT_THAT(shell.out.str(), HasSubstr("\n    4 more cases of E3 (-v prints them in full):\n"
                                           "        wrong\n"
                                           "            E10/one, E10/two, E10/three, "
                                           "E10/four\n"));
    EXPECT_THAT(shell.out.str(), HasSubstr("    E3           5 cases  E3/meant\n"));
}

TEST(Program, DrawsNoMoreThanThreeClauses) {
    Shell shell;
    shell.cases = {case_of("E1/one", Level::erratum), case_of("E2/one", Level::erratum),
                   case_of("E3/one", Level::erratum), case_of("E4/one", Level::erratum)};
    shell.act = [](const Case& the_case) {
        return failure_after(20, std::string(the_case.clause()));
    };
    EXPECT_EQ(shell.test(), 1);
    EXPECT_EQ(shell.ran.size(), 4u + 3u);
    EXPECT_THAT(shell.out.str(),
                HasSubstr("(the trace of this failure: run it again as below, or with -v)"));
}

TEST(Program, DrawsEachFailureAtOnceWhereAllAreAskedFor) {
    Shell shell;
    shell.cases = {case_of("E3/one", Level::erratum), case_of("E3/two", Level::erratum)};
    shell.act = [](const Case&) { return failure_after(3, "E3"); };
    EXPECT_EQ(shell.test({"-v"}), 1);
    EXPECT_THAT(shell.ran, ElementsAre("E3/one", "E3/one", "E3/two", "E3/two"));
}

TEST(Program, SpeaksOfTheRunThatIsDrawn) {
    Shell shell;
    shell.cases = {case_of("E3/one", Level::erratum)};
    shell.act = [&shell](const Case&) {
        return failure_after(3, shell.last_settings.record_accesses ? "E24" : "E3");
    };
    EXPECT_EQ(shell.test(), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("fail E3/one (clause E24)"));
    EXPECT_THAT(shell.out.str(), HasSubstr("step 2 of E24"));
}

TEST(Program, SavesTheRunThatIsDrawn) {
    const Folder folder;
    Shell shell;
    shell.cases = {case_of("E3/one", Level::erratum)};
    shell.act = [&shell](const Case&) {
        const bool is_second = shell.last_settings.record_accesses;
        CaseOutcome outcome = failure_after(is_second ? 5 : 3, is_second ? "E24" : "E3");
        outcome.message = is_second ? "seen twice" : "seen once";
        return outcome;
    };
    EXPECT_EQ(shell.test({"--save", folder.file("kept")}), 1);
    const ReadFailure saved = read_failure_file(folder.file("kept/E3-one.json"));
    EXPECT_EQ(saved.error, "");
    EXPECT_EQ(saved.file.clause, "E24");
    EXPECT_EQ(saved.file.message, "seen twice");
    EXPECT_EQ(saved.file.record.timeline.steps().size(), 5u);
    EXPECT_FALSE(saved.file.stepper.empty());
}

// As failure_after(), of a run in which the case has seen an access.
CaseOutcome failure_after_access(int steps, const std::string& clause) {
    CaseOutcome outcome = failure_after(steps, clause);
    auto record = std::make_shared<RunRecord>(*outcome.record);
    TimelineStep access;
    access.kind = StepKind::access;
    access.text = "an access";
    record->timeline.add(access);
    outcome.record = std::move(record);
    return outcome;
}

TEST(Program, RepeatsARunThatHasSeenSomeAccesses) {
    Shell shell;
    shell.cases = {case_of("E3/one", Level::erratum)};
    shell.act = [&shell](const Case&) {
        return failure_after_access(shell.last_settings.record_accesses ? 7 : 3, "E3");
    };
    EXPECT_EQ(shell.test(), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("step 6 of E3"));
    EXPECT_THAT(shell.out.str(), Not(HasSubstr("may be missing")));
}

// As a row, which repeats its failure by itself.
TEST(Program, DrawsARunWithAllAccessesWithoutAnother) {
    Shell shell;
    shell.cases = {case_of("E3/one", Level::erratum)};
    shell.act = [](const Case&) {
        CaseOutcome outcome = failure_after_access(3, "E3");
        auto record = std::make_shared<RunRecord>(*outcome.record);
        record->has_all_accesses = true;
        outcome.record = std::move(record);
        return outcome;
    };
    EXPECT_EQ(shell.test(), 1);
    EXPECT_THAT(shell.ran, ElementsAre("E3/one"));
    EXPECT_THAT(shell.out.str(), HasSubstr("step 2 of E3"));
    EXPECT_THAT(shell.out.str(), Not(HasSubstr("may be missing")));
}

TEST(Program, SaysThatATraceMayLackAccesses) {
    for (const bool is_other_clause : {true, false}) {
        Shell shell;
        shell.cases = {case_of("E3/one", Level::erratum)};
        shell.act = [&](const Case&) {
            if (!shell.last_settings.record_accesses) return failure_after_access(3, "E3");
            return is_other_clause ? failure_after_access(7, "E24")
                                   : CaseOutcome{Verdict::inconclusive, "E3", "not seen", ""};
        };
        EXPECT_EQ(shell.test(), 1);
        EXPECT_THAT(shell.out.str(), HasSubstr("fail E3/one (clause E3)"));
        EXPECT_THAT(shell.out.str(), HasSubstr("\nSome accesses may be missing: no run with all "));
        EXPECT_THAT(shell.out.str(), HasSubstr("step 2 of E3"));
    }
}

// The finding alone is of another clause than the failures together.
TEST(Program, EndsATraceWithTheClauseOfTheFailure) {
    Shell shell;
    shell.cases = {case_of("E24/one", Level::erratum)};
    shell.act = [](const Case&) {
        auto record = std::make_shared<RunRecord>();
        record->findings.emplace_back();
        TimelineStep step;
        step.kind = StepKind::end;
        step.clause = "contract-4";
        step.text = "exits";
        record->timeline.add(step);
        step.clause = "E10";
        step.text = "FAILED, missing-event: wrong";
        record->timeline.add(step);
        CaseOutcome outcome{Verdict::fail, "E24", "wrong", ""};
        outcome.record = std::move(record);
        return outcome;
    };
    EXPECT_EQ(shell.test(), 1);
    EXPECT_THAT(shell.out.str(), HasSubstr("fail E24/one (clause E24)"));
    EXPECT_THAT(shell.out.str(), HasSubstr("FAILED, missing-event: wrong [E24]\n"));
    EXPECT_THAT(shell.out.str(), HasSubstr("exits [contract-4]\n"));
}

}  // namespace
}  // namespace kmes::conformance
