// SPDX-License-Identifier: MIT
//
// Tests of the judge: events that are missing or late, and the rules that excuse a missing event.
#include "conformance/oracle/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/oracle/judge_testing.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;

TEST(Judge, FindsASkippedEventAfterASwap) {
    for (const bool is_attached : {true, false}) {
        TestRun run;
        for (int i = 0; i < 4; ++i) run.emit(0, spec_of("a"));
        run.deliver(0, 1);
        run.swap(0, 256, is_attached);
        if (is_attached) run.line("G 0 2");
        run.deliver(0, 4);
        const Finding finding = run.only();
        EXPECT_CODE(finding, missing_event);
        EXPECT_EQ(finding.clause, is_attached ? "5.1.8.3-5" : "5.1.8.1-6");
    }
}

// The events that were overwritten in the new buffer are whole in the consumer's.
TEST(Judge, CallsNobodyLappedInABufferThatTheConsumerDoesNotHave) {
    TestRun run;
    for (int i = 0; i < 4; ++i) run.emit_bytes(0, 60);
    run.deliver(0, 1);
    run.swap(0, 256, false);
    run.emit_bytes(0, 120);
    run.deliver(0, 4);
    EXPECT_CODE(run.only(), missing_event);
    EXPECT_EQ(run.only().clause, "5.1.8.1-6");
}

TEST(Judge, MissesWhatWasThereWhenTheConsumerSlept) {
    TestRun run;
    run.emit(0, spec_of("a"));
    run.emit(0, spec_of("b", "four"));
    run.deliver(0, 1);
    run.sleep(0);
    const Finding finding = run.only();
    EXPECT_CODE(finding, missing_event);
    EXPECT_EQ(finding.clause, "5.1.8.1-6");
    EXPECT_EQ(finding.message,
              "CPU 0: the consumer never delivered event 2 (type \"b\", 34 bytes, position 30); "
              "expected a delivery before its sleep, when it was still in the buffer");
}

TEST(Judge, CallsWhatCameAfterTheSleepLate) {
    TestRun run;
    run.emit(0, spec_of("a"));
    run.sleep(0);
    run.deliver(0, 1);
    const Finding finding = run.only();
    EXPECT_CODE(finding, late_event);
    EXPECT_EQ(finding.clause, "5.1.8.2");
    TestRun right;
    right.emit(0, spec_of("a"));
    right.deliver(0, 1);
    right.sleep(0);
    right.expect_clean();
}

TEST(Judge, MissesASkippedEvent) {
    TestRun run;
    for (int i = 0; i < 4; ++i) run.emit(0, spec_of("a"));
    run.deliver(0, 1);
    run.deliver(0, 4);
    const Finding finding = run.only();
    EXPECT_CODE(finding, missing_event);
    EXPECT_EQ(finding.clause, "5.1.8.1-6");
    EXPECT_THAT(
        finding.message,
        HasSubstr("never delivered events 2 to 3 (the first: type \"a\", 30 bytes); expected "
                  "a delivery before event 4, when they were still in the buffer"));
}

TEST(Judge, MissesEventsAfterTheTailOfTheFirstLoad) {
    TestRun run;
    run.emit(0, spec_of("a"));
    run.emit(0, spec_of("a"));
    run.deliver(0, 2);
    EXPECT_EQ(run.only().clause, "contract-2");
}

TEST(Judge, MissesWhatALappedConsumerJumpedOver) {
    TestRun run;
    run.emit_bytes(0, 100);
    run.deliver(0, 1);
    for (int i = 0; i < 4; ++i) run.emit_bytes(0, 100);  // 2 and 3 are overwritten
    run.deliver(0, 5);
    const Finding finding = run.only();
    EXPECT_CODE(finding, missing_event);
    EXPECT_EQ(finding.clause, "5.1.8.1-2");
    EXPECT_EQ(finding.sequence, 4u);
    TestRun right;
    right.emit_bytes(0, 100);
    right.deliver(0, 1);
    for (int i = 0; i < 4; ++i) right.emit_bytes(0, 100);
    right.line("L 0 2");
    right.deliver(0, 4);
    right.deliver(0, 5);
    right.sleep(0);
    right.expect_clean();
}

// A record after the report size of the overwriting operation proves nothing.
TEST(Judge, ExcusesWhatWasOverwrittenMeanwhile) {
    TestRun run;
    run.emit_bytes(0, 100);
    run.emit_bytes(0, 100);
    run.emit_bytes(0, 100);  // overwrites 1
    run.deliver(0, 2);
    run.deliver(0, 3);
    run.sleep(0);
    run.expect_clean();
}

TEST(Judge, ExcusesWhatTheConsumerCouldNeverRead) {
    TestRun run;
    run.emit_bytes(0, 100);
    run.swap(0, 256, false);  // the testee never gets this buffer
    run.emit_bytes(0, 100);
    run.emit_bytes(0, 100);  // overwrites 1 there
    run.swap(0, 256);
    run.deliver(0, 1);
    run.line("G 0 3");
    run.deliver(0, 2);
    run.deliver(0, 3);
    run.sleep(0);
    run.expect_clean();
}

TEST(Judge, MissesWhatAShrinkDroppedButTheOldBufferKeeps) {
    for (const bool right : {false, true}) {
        TestRun run(512);
        run.emit_bytes(0, 100);
        run.deliver(0, 1);
        run.emit_bytes(0, 200);
        run.emit_bytes(0, 100);
        run.swap(0, 128);  // holds only event 3
        if (right) run.deliver(0, 2);
        run.line("G 0 2");
        run.deliver(0, 3);
        run.sleep(0);
        if (right) {
            run.expect_clean();
            continue;
        }
        EXPECT_CODE(run.only(), missing_event);
        EXPECT_EQ(run.only().clause, "E10");
    }
}

// A consumer may leave a buffer unread if E19's check says that it is dead already.
TEST(Judge, ExcusesAnOldBufferThatWasNotReadBeforeTheSwap) {
    TestRun run(512);
    run.emit_bytes(0, 200);
    run.emit_bytes(0, 100);
    run.swap(0, 128);
    run.line("G 0 2");
    run.deliver(0, 2);
    run.sleep(0);
    run.expect_clean();
    TestRun drained(512);
    drained.emit_bytes(0, 200);
    drained.emit_bytes(0, 100);
    drained.history.note_draining(0);
    drained.swap(0, 128);
    drained.line("G 0 2");
    drained.deliver(0, 2);
    EXPECT_EQ(drained.only().clause, "E10");
}

TEST(Judge, DoesNotMissWhatFollowsTheEndEvent) {
    TestRun run;
    run.emit(0, spec_of(std::string(kEndEventType)));
    run.emit(0, spec_of("a"));
    run.deliver(0, 1);
    run.options.exited_with_zero = true;
    run.expect_clean();
    run.emit(0, spec_of("a"));
    run.deliver(0, 3);  // event 2 is not missed
    EXPECT_CODE(run.only(), after_end);
}

TEST(Judge, DoesNotMissWhatAnEarlyEventSkipped) {
    TestRun run;
    run.history.batch_begin(0);
    run.history.batch_add(0, spec_of("a"));
    run.history.batch_add(0, spec_of("a"));
    run.deliver(0, 2);
    EXPECT_CODE(run.only(), early_event);
}

// The record of event 2 ends where the report ended when event 1 was overwritten: it was whole
// until then.
TEST(Judge, MissesWhatWasOverwrittenJustAfterANewerOneWasDelivered) {
    TestRun run;
    run.emit_bytes(0, 100);
    run.emit_bytes(0, 100);
    run.deliver(0, 2);
    run.emit_bytes(0, 100);
    EXPECT_CODE(run.only(), missing_event);
    EXPECT_EQ(run.only().sequence, 1u);
}

TEST(Judge, RemembersTheFirstSleepOnAnEventThatIsCopied) {
    TestRun run;
    run.emit(0, spec_of("a"));
    run.sleep(0);
    run.swap(0, 512);
    run.line("G 0 2");
    run.deliver(0, 1);
    run.sleep(0);
    EXPECT_CODE(run.only(), late_event);
}

TEST(Judge, MissesTheLastEventOfAnOldBufferAtTheNextSleep) {
    for (const bool right : {false, true}) {
        TestRun run(512);
        run.emit_bytes(0, 100);
        run.deliver(0, 1);
        run.emit_bytes(0, 200);
        run.swap(0, 128);  // too small for event 2
        if (right) run.deliver(0, 2);
        run.line("G 0 2");
        run.sleep(0);
        if (right) {
            run.expect_clean();
        } else {
            EXPECT_CODE(run.only(), missing_event);
            EXPECT_EQ(run.only().clause, "E10");
        }
    }
}

TEST(Judge, WaitsForTheConsumerToLeaveTheOldBuffer) {
    TestRun run(512);
    run.emit_bytes(0, 100);
    run.deliver(0, 1);
    run.sleep(0);
    run.emit_bytes(0, 200);
    run.swap(0, 128);
    run.options.cut_short = true;
    run.expect_clean();
}

TEST(Judge, MissesTheRestOfAnOldBufferThatWasBegun) {
    TestRun run(512);
    run.emit_bytes(0, 100);
    run.emit_bytes(0, 200);
    run.emit_bytes(0, 100);
    run.swap(0, 128);   // holds only event 3
    run.deliver(0, 1);  // from the old buffer: no other has it
    run.line("G 0 2");
    run.deliver(0, 3);
    EXPECT_CODE(run.only(), missing_event);
    EXPECT_EQ(run.only().clause, "E10");
}

// Event 1 can have come from the first buffer, so it does not prove that the second was read.
TEST(Judge, ExcusesABufferThatWasAttachedAndLeftUnread) {
    for (const bool proven : {false, true}) {
        TestRun run(512);
        run.emit_bytes(0, 100);
        const BufferIndex second = run.swap(0, 512);
        run.deliver(0, 1);
        if (proven) run.history.note_draining(second);
        run.emit_bytes(0, 200);
        run.swap(0, 128);  // empty
        run.line("G 0 3");
        run.line("G 0 3");
        run.emit_bytes(0, 50);
        run.deliver(0, 3);
        if (proven) {
            EXPECT_CODE(run.only(), missing_event);
        } else {
            run.expect_clean();
        }
    }
}

TEST(Judge, DoesNotCountABufferThatTheTesteeNeverGotAsASource) {
    TestRun run(512);
    run.emit_bytes(0, 200);
    run.emit_bytes(0, 100);
    run.swap(0, 128, false);
    run.deliver(0, 2);  // only from the old buffer
    EXPECT_CODE(run.only(), missing_event);
    EXPECT_EQ(run.only().sequence, 1u);
}

// The new buffer has the event at another position, and there it may be overwritten.
TEST(Judge, NamesThePositionInTheRetiredBuffer) {
    TestRun run(512);
    run.emit_bytes(0, 100);
    run.deliver(0, 1);
    run.emit_bytes(0, 200);
    run.history.note_draining(0);
    run.sync();
    run.history.note_attached(run.history.swap(0, {512, PositionRule::shift, 1000}));
    for (int i = 0; i < 2; ++i) run.emit_bytes(0, 200);
    run.line("G 0 2");
    for (const std::uint64_t sequence : {3, 4}) run.deliver(0, sequence);
    EXPECT_CODE(run.only(), missing_event);
    EXPECT_THAT(run.only().message, HasSubstr("200 bytes, position 100 in buffer 0)"));
    EXPECT_THAT(run.only().message, HasSubstr("from the retired buffer"));
}

}  // namespace
}  // namespace kmes::conformance
