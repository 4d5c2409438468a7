// SPDX-License-Identifier: MIT
//
// Tests of the judge: a correct run, lines that are no records, the clause of a finding, and the
// bounds of a report.
#include "conformance/oracle/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/oracle/judge_testing.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;

TEST(Judge, PassesARightRun) {
    TestRun run(256, 2);
    run.emit(0, spec_of("a", "hello"));
    run.emit(1, spec_of("b", ""));
    run.deliver(0, 1);
    run.deliver(1, 1);
    run.sleep(0);
    run.sleep(1);
    run.emit(0, spec_of(std::string(kEndEventType)));
    run.emit(1, spec_of(std::string(kEndEventType)));
    run.deliver(1, 2);
    run.deliver(0, 2);
    run.options.exited_with_zero = true;
    run.expect_clean();
}

TEST(Judge, FindsAMalformedLine) {
    TestRun run;
    run.line("hello");
    const Finding finding = run.only();
    EXPECT_CODE(finding, malformed_record);
    EXPECT_EQ(finding.clause, "contract-records");
    EXPECT_THAT(finding.message, HasSubstr("unknown record \"hello\""));
    TestRun comment;
    comment.line("# hello");
    comment.expect_clean();
}

TEST(Judge, FindsACpuThatIsNotThere) {
    TestRun run;
    run.line("L 1 5");
    const Finding finding = run.only();
    EXPECT_CODE(finding, unknown_cpu);
    EXPECT_EQ(finding.message, "line 1 of the report names CPU 1; expected a CPU from 0 to 0");
}

TEST(Judge, TakesTheClauseOfTheCaseWhereTheFaultSaysNone) {
    const auto misread = [](const char* clause, std::uint64_t before) {
        TestRun run;
        run.options.clause = clause;
        for (std::uint64_t i = 1; i <= before; ++i) {
            run.emit_bytes(0, 100, 'a');
            run.deliver(0, i);
        }
        run.emit_bytes(0, 64, 'b');
        run.deliver_as(0, before + 1, "t", 34, 1);
        return run.only();
    };
    EXPECT_EQ(misread("5.1.1", 1).clause, "5.1.1");
    EXPECT_EQ(misread("contract", 1).clause, "event-model");
    EXPECT_EQ(misread("E3", 1).clause, "event-model");
    const Finding across = misread("5.1.1", 2);
    EXPECT_EQ(across.clause, "5.1.4");
    EXPECT_THAT(across.message, HasSubstr("the event wraps at the end of the region"));
    TestRun skipped;
    skipped.options.clause = "5.1.6.2";
    skipped.emit(0, spec_of("a"));
    skipped.emit(0, spec_of("a"));
    skipped.deliver(0, 2);
    EXPECT_EQ(skipped.only().clause, "5.1.6.2");
    TestRun refused;
    refused.options.clause = "5.1.6.1";
    refused.emit(0, spec_of("a"));
    refused.line("R 0 reserved");
    EXPECT_EQ(refused.only().clause, "5.1.6.1");
}

TEST(Judge, WantsEveryCpuEndedBeforeTheExit) {
    TestRun run(256, 2);
    run.emit(0, spec_of(std::string(kEndEventType)));
    run.deliver(0, 1);
    run.options.exited_with_zero = true;
    EXPECT_CODE(run.only(), ended_too_early);
    EXPECT_EQ(run.only().cpu, 1u);
}

TEST(Judge, IgnoresTheContentWhereItIsTolerated) {
    TestRun run;
    run.emit(0, spec_of("a"));
    run.deliver(0, 1);
    run.deliver(0, 1);
    run.history.tolerate(0);
    run.line("R 0 corrupt");
    run.expect_clean();
    run.line("?");
    EXPECT_CODE(run.only(), malformed_record);
}

TEST(Judge, BoundsTheFindingsOfAKind) {
    TestRun run;
    run.emit(0, spec_of("a"));
    for (int i = 0; i < 100; ++i) run.deliver(0, 1);
    const std::vector<Finding> found = run.findings();
    ASSERT_EQ(found.size(), 9u);
    EXPECT_EQ(found[8].message, "and 91 more of this kind (doubled-event)");
}

TEST(DescribeHistory, ShowsBuffersAndEvents) {
    TestRun run;
    run.emit(0, spec_of("a"));
    run.emit_bytes(0, 200);
    RecordParser parser;
    parser.feed("E 0 1 5 1 61 0 cbf29ce484222325\n");
    EXPECT_EQ(describe_history(run.history, parser, 0),
              "CPU 0 buffer 0: capacity 256, tail_pos 0, write_pos 30, generation 1\n"
              "CPU 0 event 1 (type \"a\", 30 bytes, position 0): delivered in line 1\n"
              "CPU 0 event 2: dropped\n");
}

}  // namespace
}  // namespace kmes::conformance
