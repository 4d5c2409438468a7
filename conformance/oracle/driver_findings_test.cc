// SPDX-License-Identifier: MIT
//
// Tests of the messages of the driver's findings.
#include "conformance/oracle/driver_findings.h"
#include "conformance/model/finding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;

WaitDescription futex_wait_on(std::uint32_t cpu) {
    WaitDescription wait;
    wait.thread = 4711;
    wait.on_futex = true;
    wait.cpu = cpu;
    wait.mapping_offset = 128;
    wait.expected = 5;
    wait.current_value = 5;
    return wait;
}

TEST(FindingName, IsUniqueForEachCode) {
    std::set<std::string_view> names;
    const int count = static_cast<int>(FindingCode::contract) + 1;
    for (int i = 0; i < count; ++i) names.insert(finding_name(static_cast<FindingCode>(i)));
    EXPECT_EQ(names.size(), static_cast<std::size_t>(count));
}

TEST(LostWakeUp, SaysWhatTheThreadWaitsOn) {
    const Finding finding = lost_wake_up(2, 17, futex_wait_on(2));
    EXPECT_EQ(finding.code, FindingCode::lost_wake_up);
    EXPECT_EQ(finding.clause, "5.1.8.2-2");
    EXPECT_EQ(finding.message,
              "CPU 2: the consumer sleeps on unread event 17; expected a load of write_pos after "
              "setting need_wake. Evidence: thread 4711 waits for a change of futex_counter from 5 "
              "(now 5)");
}

TEST(LostWakeUp, PicksTheClauseByTheWait) {
    WaitDescription wait = futex_wait_on(2);
    wait.is_private = true;
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "E17");
    wait = futex_wait_on(2);
    wait.retired_buffer = true;
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "E3");
    EXPECT_THAT(lost_wake_up(2, 1, wait).message, HasSubstr("retired buffer"));
    wait.counted_before = true;
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "E2");
    EXPECT_THAT(lost_wake_up(2, 1, wait).message, HasSubstr("before the last load of generation"));
    wait = futex_wait_on(2);
    wait.counted_before = true;
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "E2");
    EXPECT_THAT(lost_wake_up(2, 1, wait).message, HasSubstr("before the last load of write_pos"));
    wait = futex_wait_on(2);
    wait.mapping_offset = 132;
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "5.1.8.2-5");
    EXPECT_THAT(lost_wake_up(2, 1, wait).message,
                HasSubstr("a change of byte 132 from 5 (now 5) in the buffer"));
    wait.cpu.reset();
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "5.1.8.2-5");
    wait.on_futex = false;
    wait.where = "nanosleep";
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "5.1.8.2-5");
    EXPECT_THAT(lost_wake_up(2, 1, wait).message, HasSubstr("blocked in nanosleep"));
    wait.others_wait = true;
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "contract-2");
    EXPECT_THAT(lost_wake_up(2, 1, wait).message,
                HasSubstr("no thread waits on a buffer of this CPU, and no event of this CPU was"));
    wait.delivered = {7, "kmes.conformance.enD"};
    EXPECT_THAT(lost_wake_up(2, 8, wait).message,
                HasSubstr("the last delivered event is event 7 (type "
                          "\"kmes.conformance.enD\")"));
    EXPECT_THAT(lost_wake_up(2, 8, wait).message,
                HasSubstr("the consumer leaves event 8 unread; expected a wait on a buffer"));
}

// If the thread had a whole iteration for the event, the cause is not its sleep.
TEST(LostWakeUp, IsNoneWhereTheEventWasThereAllTheTime) {
    WaitDescription wait = futex_wait_on(2);
    wait.was_there = true;
    wait.clause = "5.1.8.1-2";
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "5.1.8.1-2");
    EXPECT_THAT(lost_wake_up(2, 1, wait).message,
                HasSubstr("expected its record, published before"));
    EXPECT_THAT(lost_wake_up(2, 1, wait).message, HasSubstr("before the last iteration"));
    wait.was_refused = true;
    EXPECT_THAT(lost_wake_up(2, 1, wait).message, HasSubstr("returned EAGAIN"));
    wait.clause = "E3";
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "5.1.8.1-6");
    wait.retired_buffer = true;
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "5.1.8.3");
    wait.clause = "E15";
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "E15");
    EXPECT_THAT(lost_wake_up(2, 1, wait).message,
                HasSubstr("a move to the new buffer before the last iteration"));
    wait.is_private = true;
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "E17");
}

TEST(LostWakeUp, IsNoneIfTheLoadOfWritePosCoveredTheEvent) {
    WaitDescription wait = futex_wait_on(2);
    wait.was_seen = true;
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "5.1.8.1-6");
    EXPECT_THAT(lost_wake_up(2, 1, wait).message, HasSubstr("before the last load of write_pos"));
    wait.clause = "event-model";
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "event-model");
}

// However long the event was there: the thread did not load write_pos, and took the counter that
// came with the event.
TEST(LostWakeUp, IsOfTheCounterWhereThatWasReadAndWritePosWasNot) {
    WaitDescription wait = futex_wait_on(2);
    wait.was_there = true;
    wait.counted_before = true;
    wait.clause = "5.1.1";
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "E2");
    EXPECT_THAT(lost_wake_up(2, 1, wait).message, HasSubstr("before the last load of write_pos"));
    wait.was_seen = true;
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "5.1.1");
}

TEST(LostWakeUp, NamesTheValueThatWasReadWhereAnotherOneIsWaitedWith) {
    WaitDescription wait = futex_wait_on(2);
    wait.was_seen = true;
    wait.read_instead = 41;
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "5.1.8.2-5");
    EXPECT_THAT(lost_wake_up(2, 1, wait).message, HasSubstr("the last value read there is 41"));
    // The words determine the clause.
    wait.was_seen = false;
    wait.counted_before = true;
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "5.1.8.2-5");
    EXPECT_THAT(lost_wake_up(2, 1, wait).message, HasSubstr("the last value read there is 41"));
}

TEST(AsleepOnRetired, IsOfTheCaseThatGaveItAnIteration) {
    WaitDescription wait = futex_wait_on(2);
    EXPECT_EQ(asleep_on_retired(2, wait).clause, "E3");
    wait.counted_before = true;
    EXPECT_EQ(asleep_on_retired(2, wait).clause, "E2");
    EXPECT_THAT(asleep_on_retired(2, wait).message,
                HasSubstr("before the last load of generation"));
    wait.was_there = true;
    EXPECT_EQ(asleep_on_retired(2, wait).clause, "5.1.8.3");
    wait.clause = "E15";
    EXPECT_EQ(asleep_on_retired(2, wait).clause, "E15");
    EXPECT_THAT(asleep_on_retired(2, wait).message, HasSubstr("expected a move to the new one"));
}

TEST(LostWakeUp, SaysWhereNobodyAskedForAWake) {
    WaitDescription wait = futex_wait_on(2);
    wait.asked = false;
    EXPECT_EQ(lost_wake_up(2, 1, wait).clause, "5.1.8.2-1");
    EXPECT_THAT(lost_wake_up(2, 1, wait).message, HasSubstr("need_wake is 0"));
}

TEST(WriteOutside, NamesTheClauseOfTheField) {
    EXPECT_EQ(write_outside(0, 64, 8, "").clause, "5.1.6.2");
    EXPECT_EQ(write_outside(0, 72, 8, "").clause, "5.1.6.2");
    EXPECT_EQ(write_outside(0, 128, 4, "").clause, "5.1.6.3");
    EXPECT_EQ(write_outside(0, 136, 4, "").clause, "contract");
    EXPECT_EQ(write_outside(0, 5000, 4, "").clause, "contract");
}

TEST(WriteOutside, NamesTheField) {
    EXPECT_THAT(write_outside(0, 64, 8, "").message,
                HasSubstr("the consumer wrote 8 bytes at byte 64 of the mapping (write_pos)"));
    EXPECT_THAT(write_outside(0, 130, 0, "").message,
                HasSubstr("wrote at byte 130 of the mapping (futex_counter)"));
}

TEST(WriteOutside, NamesTheInstruction) {
    EXPECT_EQ(
        write_outside(3, 5000, 8, "mov qword ptr [rax], rcx").message,
        "CPU 3: the consumer wrote 8 bytes at byte 5000 of the mapping (data) by mov qword ptr "
        "[rax], rcx; expected stores to need_wake (byte 132) only");
}

TEST(IsPermittedStore, AllowsNeedWakeInOneByteOrFour) {
    EXPECT_TRUE(is_permitted_store(132, 1));
    EXPECT_TRUE(is_permitted_store(132, 4));
}

TEST(IsPermittedStore, RefusesEverythingElse) {
    for (const auto& [offset, bytes] :
         {std::pair(132u, 8u), std::pair(132u, 2u), std::pair(128u, 8u), std::pair(128u, 4u),
          std::pair(133u, 1u), std::pair(64u, 8u), std::pair(5000u, 8u)})
        EXPECT_FALSE(is_permitted_store(offset, bytes)) << offset << ", " << bytes;
}

TEST(JudgeNeedWakeBytes, WantsZeroOrOneAndZeros) {
    const std::uint8_t clear[4] = {0, 0, 0, 0};
    const std::uint8_t set[4] = {1, 0, 0, 0};
    const std::uint8_t two[4] = {2, 0, 0, 0};
    const std::uint8_t beyond[4] = {1, 0, 7, 0};
    EXPECT_FALSE(judge_need_wake_bytes(0, clear));
    EXPECT_FALSE(judge_need_wake_bytes(0, set));
    EXPECT_EQ(judge_need_wake_bytes(0, two)->code, FindingCode::wrong_need_wake);
    EXPECT_EQ(judge_need_wake_bytes(0, beyond)->code, FindingCode::write_outside);
    EXPECT_THAT(judge_need_wake_bytes(0, beyond)->message, HasSubstr("are 1 0 7 0"));
}

TEST(ProcessFindings, NameSignalStatusAndState) {
    EXPECT_EQ(
        crash(11, "SIGSEGV", "0x401000").message,
        "the consumer was killed by signal 11 (SIGSEGV); expected no crash. Evidence: 0x401000");
    EXPECT_EQ(wrong_exit_status(3).message,
              "the consumer exited with status 3; expected 0 after all CPUs have ended");
    EXPECT_EQ(
        ended_too_early(0, "CPU 1").message,
        "the consumer exited with status 0; expected the record of the end event of CPU 1 first");
    EXPECT_EQ(
        never_ended("the consumer still ran after 500 ms").message,
        "the consumer does not exit after it has delivered everything; expected exit status 0. "
        "Evidence: the consumer still ran after 500 ms");
    EXPECT_THAT(read_outside(0, 9000, 1, "").message, HasSubstr("read 1 byte at byte 9000"));
}

}  // namespace
}  // namespace kmes::conformance
