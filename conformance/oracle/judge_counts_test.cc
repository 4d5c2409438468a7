// SPDX-License-Identifier: MIT
//
// Tests of the judge: the losses and the generations of a report (L and G records).
#include "conformance/oracle/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/oracle/judge_testing.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(Judge, WantsExactLossCounts) {
    for (const std::string& lost :
         {std::string("L 0 2"), std::string("L 0 1"), std::string("L 0 3"), std::string()}) {
        TestRun run;
        run.emit_bytes(0, 30);
        run.emit_bytes(0, 129);
        run.emit_bytes(0, 129);
        run.emit_bytes(0, 30);
        run.deliver(0, 1);
        if (!lost.empty()) run.line(lost);
        run.deliver(0, 4);
        run.sleep(0);
        if (lost == "L 0 2" || lost.empty()) {
            run.expect_clean();
            continue;
        }
        EXPECT_CODE(run.only(), wrong_loss_count);
        EXPECT_THAT(run.only().message, HasSubstr("expected 2 between event 1 and event 4"));
    }
}

TEST(Judge, WantsEveryLossOfATesteeThatWritesThem) {
    TestRun run(256, 2);
    for (const std::uint32_t cpu : {0u, 1u}) {
        run.emit_bytes(cpu, 31 + cpu);
        run.emit_bytes(cpu, 129);
        run.emit_bytes(cpu, 31 + cpu);
        run.deliver(cpu, 1);
        if (cpu == 0) run.line("L 0 1");
        run.deliver(cpu, 3);
    }
    EXPECT_CODE(run.only(), missing_loss);
    EXPECT_EQ(run.only().cpu, 1u);
    EXPECT_EQ(run.only().message,
              "CPU 1: the consumer reported no loss between event 1 and event 3; expected an L "
              "record of 1 event, since it writes L records (line 5 of the report)");
}

TEST(Judge, WantsNoLossWhereThereIsNone) {
    TestRun run;
    run.emit(0, spec_of("a"));
    run.emit(0, spec_of("a"));
    run.deliver(0, 1);
    run.line("L 0 1");
    run.deliver(0, 2);
    EXPECT_CODE(run.only(), wrong_loss_count);
}

TEST(Judge, DoesNotCountWhatCameBeforeTheFirstDeliveredEvent) {
    TestRun run;
    run.emit_bytes(0, 129);
    run.emit_bytes(0, 30);
    run.line("L 0 1");
    run.deliver(0, 2);
    EXPECT_CODE(run.only(), wrong_loss_count);
    EXPECT_THAT(run.only().message, HasSubstr("before the first delivered event"));
}

TEST(Judge, WantsAnEventAfterEveryLoss) {
    TestRun run;
    run.emit(0, spec_of(std::string(kEndEventType)));
    run.deliver(0, 1);
    run.line("L 0 4");
    run.options.exited_with_zero = true;
    EXPECT_CODE(run.only(), wrong_loss_count);
    EXPECT_THAT(run.only().message, HasSubstr("expected a delivered event after the L record"));
}

TEST(Judge, DoesNotLetLossCountsWrapToARightOne) {
    TestRun run;
    run.emit(0, spec_of("a"));
    run.emit(0, spec_of("a"));
    run.deliver(0, 1);
    run.line("L 0 18446744073709551615");
    run.line("L 0 1");
    run.deliver(0, 2);
    EXPECT_CODE(run.only(), wrong_loss_count);
}

TEST(Judge, WantsAGenerationThatTheFieldHeld) {
    TestRun run;
    run.line("G 0 1");
    run.swap(0, 256);
    run.line("G 0 2");
    run.expect_clean();
    run.line("G 0 3");
    EXPECT_CODE(run.only(), wrong_generation);
    EXPECT_THAT(run.only().message, HasSubstr("had (1, 2)"));
    run.sync();
    run.history.nudge(0);
    EXPECT_CODE(run.only(), wrong_generation);  // it was written before the nudge
}

TEST(Judge, TakesALaterGenerationThatIsSmaller) {
    TestRun run;
    run.swap(0, 256, false);
    run.history.nudge(0);
    run.line("G 0 3");  // the retired first buffer
    const BufferIndex second = 1;
    run.history.note_attached(second);
    run.line("G 0 2");
    run.expect_clean();
}

TEST(Judge, DoesNotTakeAValueOfBeforeTheAttach) {
    HistorySettings settings;
    History history(settings);
    history.nudge(0);
    history.note_attached(0);
    RecordParser parser;
    parser.feed("G 0 1\n");
    EXPECT_EQ(judge(history, parser).size(), 1u);
    RecordParser right;
    right.feed("G 0 2\n");
    EXPECT_THAT(judge(history, right), IsEmpty());
}

TEST(Judge, WantsAGenerationAfterEverySwitch) {
    for (const bool right : {false, true}) {
        TestRun run;
        run.line("G 0 1");
        run.emit(0, spec_of("a"));
        run.deliver(0, 1);
        run.swap(0, 512);
        run.emit(0, spec_of("a"));
        if (right) run.line("G 0 2");
        run.deliver(0, 2);
        if (right) {
            run.expect_clean();
        } else {
            EXPECT_CODE(run.only(), missing_generation);
        }
    }
}

TEST(Judge, WantsNoGenerationWhereNoSwitchIsProven) {
    TestRun run;
    run.emit(0, spec_of("a"));
    run.swap(0, 512);
    run.deliver(0, 1);  // from either buffer
    run.sync();
    run.emit(0, spec_of("a"));
    run.deliver(0, 2);
    run.expect_clean();
}

// A consumer may switch before it has drained the old buffer, if it finds the rest in the new one.
// Its G record is then before events that both buffers contain.
TEST(Judge, TakesAGenerationBeforeEventsThatBothBuffersHold) {
    TestRun run;
    run.emit(0, spec_of("a"));
    run.deliver(0, 1);
    run.emit(0, spec_of("a"));
    run.swap(0, 512);
    run.line("G 0 2");
    run.deliver(0, 2);
    run.emit(0, spec_of("a"));
    run.deliver(0, 3);
    run.expect_clean();
}

// A consumer that reads from both buffers, the older event first, writes the record when it begins
// with the new one.
TEST(Judge, TakesAGenerationBeforeTheRestOfTheOldBuffer) {
    for (const bool is_reported : {false, true}) {
        TestRun run;
        run.emit(0, spec_of("a"));
        run.deliver(0, 1);
        run.sync();
        run.emit(0, spec_of("a"));
        run.swap(0, 512);
        constexpr std::uint64_t kLast = 22;
        for (std::uint64_t i = 3; i <= kLast; ++i) run.emit(0, spec_of("a"));
        if (is_reported) run.line("G 0 2");
        run.deliver(0, 2);  // only the old buffer has it
        const std::uint64_t oldest = 6;
        run.line("L 0 3");
        for (std::uint64_t i = oldest; i <= kLast; ++i) run.deliver(0, i);
        if (is_reported) {
            run.expect_clean();
        } else {
            EXPECT_CODE(run.only(), missing_generation);
        }
    }
}

TEST(Judge, WantsOneGenerationForEachOfTwoSwitches) {
    TestRun run;
    for (int i = 0; i < 3; ++i) {
        if (i > 0) run.swap(0, 256);
        if (i == 1) run.line("G 0 2");
        run.emit(0, spec_of("a"));
        run.deliver(0, static_cast<std::uint64_t>(i) + 1);
        run.sleep(0);
    }
    EXPECT_CODE(run.only(), missing_generation);
    run.line("G 0 3");
    run.expect_clean();
}

TEST(Judge, DoesNotTakeTheOldBuffersGeneration) {
    for (const bool first_too : {false, true}) {
        TestRun run;
        if (first_too) run.line("G 0 1");
        run.emit(0, spec_of("a"));
        run.deliver(0, 1);
        run.swap(0, 512);
        run.emit(0, spec_of("a"));
        // If there is a record of the first mapping, the second may be of a buffer in between.
        run.line(first_too ? "G 0 2" : "G 0 1");
        run.deliver(0, 2);
        if (first_too) {
            run.expect_clean();
        } else {
            EXPECT_CODE(run.only(), wrong_generation);
            EXPECT_THAT(run.only().message, HasSubstr("after change 1 of buffers"));
        }
    }
}

TEST(Judge, DoesNotCompareLossesAcrossAWrongRecord) {
    TestRun run;
    run.emit_bytes(0, 30);
    run.emit_bytes(0, 129);
    run.emit_bytes(0, 30);
    run.deliver(0, 1);
    run.line("L 0 1");
    run.deliver_as(0, 99, "t", 0, fnv1a(""));
    run.deliver(0, 3);
    EXPECT_CODE(run.only(), invented_event);
}

TEST(Judge, MissesTheGenerationOfTheFirstOfTwoSwitches) {
    TestRun run;
    for (int i = 0; i < 3; ++i) {
        if (i > 0) run.swap(0, 256);
        if (i == 2) run.line("G 0 3");
        run.emit(0, spec_of("a"));
        run.deliver(0, static_cast<std::uint64_t>(i) + 1);
        run.sleep(0);
    }
    EXPECT_CODE(run.only(), missing_generation);
}

TEST(Judge, WaitsForTheGenerationOfARunThatWasCutShort) {
    TestRun run;
    run.emit(0, spec_of("a"));
    run.deliver(0, 1);
    run.swap(0, 256);
    run.emit(0, spec_of("a"));
    run.deliver(0, 2);
    EXPECT_CODE(run.only(), missing_generation);
    run.options.cut_short = true;
    run.expect_clean();
}

}  // namespace
}  // namespace kmes::conformance
