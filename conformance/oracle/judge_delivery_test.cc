// SPDX-License-Identifier: MIT
//
// Tests of the judge: which events are delivered, how often, in which order, and when.
#include "conformance/oracle/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/oracle/judge_testing.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;

TEST(Judge, FindsAnInventedEvent) {
    TestRun run;
    run.emit(0, spec_of("a"));
    run.deliver(0, 1);
    run.deliver_as(0, 2, "a", 0, fnv1a(""));
    const Finding finding = run.only();
    EXPECT_CODE(finding, invented_event);
    EXPECT_EQ(finding.message,
              "CPU 0: the consumer delivered event 2; expected one of the events 1 to 1 (line 2 of "
              "the report)");
}

TEST(Judge, FindsADeliveredEventThatWasDropped) {
    TestRun run;
    run.emit_bytes(0, 129);
    run.deliver_as(0, 1, "t", 99, 1);
    EXPECT_EQ(run.only().clause, "5.1.7-5");
    TestRun right;
    right.emit_bytes(0, 129);
    right.emit_bytes(0, 128);
    right.deliver(0, 2);
    right.sleep(0);
    right.expect_clean();
}

TEST(Judge, FindsAnEventBeforeItWasPublished) {
    TestRun run;
    run.history.batch_begin(0);
    run.history.batch_add(0, spec_of("a"));
    run.deliver(0, 1);
    run.sync();
    run.history.batch_end(0);
    EXPECT_CODE(run.only(), early_event);
    TestRun right;  // the record may have been written during the operation
    right.sync();
    right.history.batch_begin(0);
    right.history.batch_add(0, spec_of("a"));
    right.history.batch_end(0);
    right.deliver(0, 1);
    right.expect_clean();
}

// A consumer that compares with write_pos to find out whether its copy was overwritten.
TEST(Judge, TellsAnEventThatIsWrittenOverAnotherFromOneBeyondWritePos) {
    TestRun run;
    run.emit_bytes(0, 128, 'a');
    run.emit_bytes(0, 128, 'b');
    run.deliver(0, 1);
    run.history.batch_begin(0);
    EventSpec over = spec_of("t");
    over.payload = std::string(98, 'c');
    run.history.batch_add(0, over);  // at the place of event 1
    over.payload = std::string(98, 'd');
    run.deliver(0, 3);
    const std::vector<Finding> beyond = run.findings();
    ASSERT_FALSE(beyond.empty());
    EXPECT_CODE(beyond[0], early_event);
    EXPECT_EQ(beyond[0].clause, "5.1.8.1-1");
    TestRun torn;
    torn.emit_bytes(0, 128, 'a');
    torn.emit_bytes(0, 128, 'b');
    torn.history.batch_begin(0);
    torn.history.batch_add(0, over);
    torn.deliver(0, 3);
    const std::vector<Finding> findings = torn.findings();
    ASSERT_FALSE(findings.empty());
    EXPECT_CODE(findings[0], early_event);
    EXPECT_EQ(findings[0].clause, "5.1.8.1-5");
    EXPECT_THAT(findings[0].message,
                HasSubstr("expected a discard of event 1, which it overwrote"));
}

TEST(Judge, FindsAnEventOfABatchThatNeverEnded) {
    TestRun run;
    run.history.batch_begin(0);
    run.history.batch_add(0, spec_of("a"));
    run.deliver(0, 1);
    EXPECT_CODE(run.only(), early_event);
}

TEST(Judge, FindsADoubledEvent) {
    TestRun run;
    run.emit(0, spec_of("a"));
    run.deliver(0, 1);
    run.deliver(0, 1);
    EXPECT_CODE(run.only(), doubled_event);
    EXPECT_EQ(run.only().clause, "5.1.8.1-6");
}

TEST(Judge, FindsADoubledEventAfterASwap) {
    TestRun run;
    run.emit(0, spec_of("a"));
    run.deliver(0, 1);
    run.swap(0, 256);
    run.line("G 0 2");
    run.deliver(0, 1);
    EXPECT_CODE(run.only(), doubled_event);
    EXPECT_EQ(run.only().clause, "E21");
}

// The testee cannot take an event from a buffer that it does not have, or not yet.
TEST(Judge, FindsADoubledEventBesideASwapThatTheConsumerDidNotFollow) {
    for (const bool is_attached_later : {false, true}) {
        TestRun run;
        run.emit(0, spec_of("a"));
        run.deliver(0, 1);
        if (!is_attached_later) run.swap(0, 256, false);
        run.deliver(0, 1);
        if (is_attached_later) run.swap(0, 256);
        EXPECT_CODE(run.only(), doubled_event);
        EXPECT_EQ(run.only().clause, "5.1.8.1-6") << is_attached_later;
    }
}

// The report is hostile: it may name an event before the testee has its buffer.
TEST(Judge, SurvivesARecordFromBeforeTheAttach) {
    TestRun run;
    run.history = History(run.history.log().settings);  // nothing is attached
    for (int i = 0; i < 4; ++i) run.emit(0, spec_of("a"));
    run.deliver(0, 1);
    run.deliver(0, 4);
    run.sync();
    run.history.note_attached(0);
    EXPECT_CODE(run.only(), missing_event);
}

TEST(Judge, FindsReorderedEvents) {
    TestRun run;
    run.emit(0, spec_of("a"));
    run.emit(0, spec_of("a"));
    run.deliver(0, 2);
    run.deliver(0, 1);
    run.sleep(0);
    const Finding finding = run.only();
    EXPECT_CODE(finding, reordered_event);
    EXPECT_THAT(finding.message, HasSubstr("after event 2; expected the order"));
}

TEST(Judge, AssumesNoOrderBetweenCpus) {
    TestRun run(256, 2);
    run.emit(0, spec_of("a", "x"));
    run.emit(1, spec_of("a", "y"));
    run.deliver(1, 1);
    run.deliver(0, 1);
    run.expect_clean();
}

TEST(Judge, CallsWhatIsReorderedOverASleepReorderedOnly) {
    TestRun run;
    run.emit(0, spec_of("a"));
    run.emit(0, spec_of("a"));
    run.deliver(0, 2);
    run.sleep(0);
    run.deliver(0, 1);
    EXPECT_CODE(run.only(), reordered_event);
}

}  // namespace
}  // namespace kmes::conformance
