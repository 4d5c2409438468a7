// SPDX-License-Identifier: MIT
//
// Tests of what a report takes from a failure and from the machine.
#include "conformance/main/evidence.h"

#include <gtest/gtest.h>

#include <memory>

#include "conformance/main/machine.h"
#include "conformance/model/run_record.h"

namespace kmes::conformance {
namespace {

CaseOutcome flooded() {
    auto record = std::make_shared<RunRecord>();
    record->findings.resize(1000);
    record->findings[0].message = std::string(100000, 'm');
    record->history_excerpt = std::string(100000, 'h');
    record->standard_error = std::string(100000, 'e') + "last words";
    TimelineStep step;
    step.text = std::string(20000, 't');
    for (int i = 0; i < 1000; ++i) record->timeline.add(step);
    CaseOutcome outcome;
    outcome.verdict = Verdict::fail;
    outcome.record = record;
    return outcome;
}

TEST(Evidence, IsBounded) {
    CaseResult result;
    take_evidence(flooded(), result);
    EXPECT_EQ(result.findings.size(), kFindingsInAReport);
    EXPECT_EQ(result.findings[0].message.size(), kTextBytesInAReport);
    EXPECT_EQ(result.history.size(), kTextBytesInAReport);
    EXPECT_EQ(result.standard_error.size(), kStandardErrorBytesInAReport);
    EXPECT_TRUE(result.standard_error.ends_with("last words"));
    EXPECT_LE(result.trace.rows.size(), 200u);
}

std::string last_words_of(FindingCode code, const std::string& standard_error) {
    auto record = std::make_shared<RunRecord>();
    record->findings.resize(1);
    record->findings[0].code = code;
    record->standard_error = standard_error;
    CaseOutcome outcome;
    outcome.record = record;
    CaseResult result;
    take_evidence(outcome, result);
    return result.last_words;
}

TEST(Evidence, OfAnExitIsTheFirstAndTheLastLineOfTheStandardError) {
    const std::string text = "\n=====\n  error: index 512 in ring.d(307)\n=====\n";
    for (const FindingCode code :
         {FindingCode::crash, FindingCode::ended_too_early, FindingCode::wrong_exit_status})
        EXPECT_EQ(last_words_of(code, text), "  error: index 512 in ring.d(307)");
    EXPECT_EQ(last_words_of(FindingCode::crash, "no end of line"), "no end of line");
    EXPECT_EQ(last_words_of(FindingCode::crash, std::string(100000, 'e')).size(), 300u);
    EXPECT_EQ(last_words_of(FindingCode::crash, "\n--\n"), "");
    EXPECT_EQ(last_words_of(FindingCode::crash, "Traceback\n  File c.py\nValueError: 7\n\n--\n"),
              "Traceback ... ValueError: 7");
    EXPECT_EQ(last_words_of(FindingCode::crash, "again\nagain\n"), "again ... again");
    EXPECT_EQ(last_words_of(FindingCode::torn_event, text), "");
}

TEST(Evidence, IsThatOfTheLastRun) {
    CaseResult result;
    take_evidence(flooded(), result);
    take_evidence(CaseOutcome{}, result);
    EXPECT_TRUE(result.findings.empty());
    EXPECT_TRUE(result.history.empty());
    EXPECT_TRUE(result.standard_error.empty());
    EXPECT_TRUE(result.trace.rows.empty());
}

TEST(Machine, HasTheNameOfTheProcessor) {
    EXPECT_EQ(processor_name("processor\t: 0\nmodel name\t: A CPU\nmodel\t: 3\n"), "A CPU");
    EXPECT_EQ(processor_name("processor\t: 0\nmodel name"), "");
    EXPECT_EQ(processor_name(""), "");
    EXPECT_NE(this_machine().kernel, "");
    EXPECT_GE(this_machine().processors, 1u);
}

}  // namespace
}  // namespace kmes::conformance
