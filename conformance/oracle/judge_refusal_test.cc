// SPDX-License-Identifier: MIT
//
// Tests of the judge: refused buffers (R records), and buffers that had to be refused.
#include "conformance/oracle/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/oracle/judge_testing.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;

TEST(Judge, FindsARefusalWithoutReason) {
    TestRun run;
    run.line("R 0 I do not like it");
    EXPECT_CODE(run.only(), refused_without_reason);
    EXPECT_THAT(run.only().message, HasSubstr("\"I do not like it\""));
    run.history.set_fault(0, BufferFault::reserved_not_zero, "byte 14 is 1");
    EXPECT_CODE(run.only(), refused_without_reason);
    run.history.set_fault(0, BufferFault::corrupt_content, "event_size 0");
    run.expect_clean();
    run.history.set_fault(0, BufferFault::magic, "magic");
    run.expect_clean();
}

TEST(Judge, SaysWhatWasOverwrittenBeforeARefusalWithoutReason) {
    for (const bool is_overwritten : {false, true}) {
        TestRun run;
        run.emit(0, spec_of("a"));
        run.deliver(0, 1);
        run.emit(0, spec_of("b"));
        if (is_overwritten) {
            for (int i = 0; i < 20; ++i) run.emit(0, spec_of("c"));
        }
        run.line("R 0 corrupt event");
        EXPECT_CODE(run.only(), refused_without_reason);
        const std::string& message = run.only().message;
        EXPECT_EQ(message.find("the next event, 2, was overwritten") != message.npos,
                  is_overwritten)
            << message;
    }
}

TEST(Judge, WantsARefusalOfWhatMustBeRefused) {
    for (const BufferFault fault : {BufferFault::magic, BufferFault::version, BufferFault::capacity,
                                    BufferFault::data_offset}) {
        TestRun run;
        run.history.set_fault(0, fault, "capacity 65537");
        EXPECT_CODE(run.only(), not_refused);
        EXPECT_THAT(run.only().message, HasSubstr("capacity 65537"));
        run.options.cut_short = true;
        run.expect_clean();
    }
}

TEST(Judge, FindsWhatWasDeliveredFromARefusableBuffer) {
    TestRun run;
    run.history.set_fault(0, BufferFault::version, "version 2");
    run.emit(0, spec_of("a"));
    run.deliver(0, 1);
    const std::vector<Finding> found = run.findings();
    ASSERT_EQ(found.size(), 2u);
    EXPECT_CODE(found[0], not_refused);
    EXPECT_CODE(found[1], delivered_from_refused);
}

TEST(Judge, FindsWhatWasDeliveredAfterARefusal) {
    TestRun run;
    run.history.set_fault(0, BufferFault::corrupt_content, "event_size 0");
    run.emit(0, spec_of("a"));
    run.line("R 0 corrupt");
    run.deliver(0, 1);
    EXPECT_CODE(run.only(), after_refusal);
}

TEST(Judge, MissesNothingAfterARefusal) {
    TestRun run;
    run.history.set_fault(0, BufferFault::magic, "magic");
    run.emit(0, spec_of("a"));
    run.line("R 0 bad magic");
    run.options.exited_with_zero = true;
    run.expect_clean();
}

TEST(Judge, MissesNothingInABufferWithCorruptContent) {
    TestRun run;
    for (int i = 0; i < 3; ++i) run.emit(0, spec_of("a"));
    run.history.set_fault(0, BufferFault::corrupt_content, "event 2 has event_size 0");
    run.deliver(0, 1);
    run.deliver(0, 3);
    run.emit(0, spec_of("a"));
    run.sleep(0);
    run.expect_clean();
}

TEST(Judge, MissesNothingAfterARefusalEvenIfItWasWrong) {
    TestRun run;
    run.line("R 0 no");
    run.emit(0, spec_of("a"));
    run.sleep(0);
    EXPECT_CODE(run.only(), refused_without_reason);
}

TEST(Judge, TakesARefusalOfAnOlderBuffer) {
    TestRun run;
    run.history.set_fault(0, BufferFault::magic, "magic");
    run.swap(0, 256);
    run.line("R 0 bad magic");
    run.expect_clean();
}

TEST(Judge, FindsWhatWasDeliveredFromARefusableSecondBuffer) {
    TestRun run;
    run.emit(0, spec_of("a"));
    run.deliver(0, 1);
    const BufferIndex second = run.swap(0, 256);
    run.history.set_fault(second, BufferFault::magic, "magic");
    run.emit(0, spec_of("a"));
    run.line("G 0 2");
    run.deliver(0, 2);
    const std::vector<Finding> found = run.findings();
    ASSERT_EQ(found.size(), 2u);
    EXPECT_CODE(found[0], not_refused);
    EXPECT_CODE(found[1], delivered_from_refused);
}

}  // namespace
}  // namespace kmes::conformance
