// SPDX-License-Identifier: MIT
//
// What failures have in common.
#include "conformance/main/symptom.h"

#include <gtest/gtest.h>

namespace kmes::conformance {
namespace {

Symptom symptom(FindingCode code, const std::string& clause, const std::string& message,
                std::string_view case_clause) {
    Finding finding;
    finding.code = code;
    finding.clause = clause;
    finding.message = message;
    return symptom_of(finding, case_clause);
}

TEST(Symptom, ACrashIsItsPlace) {
    const std::string message =
        "the consumer was killed by signal 6 (Aborted); expected no crash. Evidence: SIGABRT, by "
        "`mov ebp, eax` at a+0x8 (drain+0x1, a.c:9)";
    const Symptom found = symptom(FindingCode::crash, "E1", message, "E1");
    EXPECT_TRUE(found.is_assumed);
    EXPECT_EQ(found.cause, symptom(FindingCode::crash, "E7", message, "E7").cause);
    EXPECT_EQ(found.cause, "signal 6 (Aborted) in drain");
}

TEST(Symptom, ACrashWithoutTheNameOfAFunctionIsItsInstruction) {
    const std::string message =
        "the consumer was killed by signal 6 (Aborted); expected no crash. Evidence: SIGABRT, by "
        "`mov ebp, eax` at libc.so.6+0x8aeec (pthread_kill.c:44)";
    EXPECT_EQ(symptom(FindingCode::crash, "E1", message, "E1").cause,
              "signal 6 (Aborted) at `mov ebp, eax` at libc.so.6+0x8aeec (pthread_kill.c:44)");
}

TEST(Symptom, ACrashInALibraryIsAtTheProgramsOwnCall) {
    const std::string message =
        "the consumer was killed by signal 6 (Aborted); expected no crash. Evidence: SIGABRT, by "
        "`mov ebp, eax` at libc.so.6+0x8aeec (raise+0x1c), called from ";
    const auto cause = [&message](const std::string& caller) {
        return symptom(FindingCode::crash, "E1", message + caller, "E1").cause;
    };
    EXPECT_EQ(cause("a+0xe3e (drain+0x6e, a.c:144)"), "signal 6 (Aborted) in drain");
    EXPECT_EQ(cause("a+0xe3e (drain.cold+0x6, a.c:144)"), "signal 6 (Aborted) in drain");
    EXPECT_EQ(cause("a+0xe3e"), "signal 6 (Aborted) at a+0xe3e");
    EXPECT_EQ(cause("a+0xe3e. Evidence: its last action was a wait"),
              "signal 6 (Aborted) at a+0xe3e");
}

TEST(Symptom, AForbiddenStoreIsItsPlace) {
    const std::string message =
        "CPU 0: the consumer wrote 8 bytes at byte 0 of the mapping (magic) by `mov [rdi], rdx` at "
        "a+0xe3e (copy+0x6e, a.c:144); expected stores to need_wake (byte 132) only";
    const Symptom found = symptom(FindingCode::write_outside, "contract", message, "E7");
    EXPECT_EQ(found.cause, "write-outside in copy");
    EXPECT_EQ(place_of_access(found.cause), "in copy");
    EXPECT_EQ(place_of_access("signal 11 (Segmentation fault) in copy; after a lap"), "in copy");
    EXPECT_EQ(place_of_access("signal 6 (Aborted) in copy"), "");
    const std::string no_place = "CPU 0: the consumer wrote 4 bytes at byte 128 of the mapping";
    EXPECT_EQ(symptom(FindingCode::write_outside, "contract", no_place, "E7").cause,
              "write-outside");
}

TEST(Symptom, TheCausesHaveClauses) {
    EXPECT_EQ(clause_of_cause("exit status 3"), "contract-4");
    EXPECT_EQ(clause_of_cause("a refusal: x"), "contract-records");
    EXPECT_EQ(clause_of_cause("a standstill: x"), "contract-2");
    EXPECT_TRUE(is_same_everywhere("exit status 3"));
    EXPECT_FALSE(is_same_everywhere(kSleepOnOldEvent));
    EXPECT_FALSE(is_same_everywhere(kEventPassedOver));
}

TEST(Symptom, AKeptBufferIsTheFieldThatIsWrong) {
    const Symptom found = symptom(
        FindingCode::not_refused, "5.1.6.1",
        "CPU 0: the consumer keeps a malformed buffer (twice the capacity); expected an R record",
        "E24");
    EXPECT_EQ(found.cause, "a malformed buffer kept: capacity");
    EXPECT_TRUE(found.is_assumed);
}

TEST(Symptom, AnExitIsItsStatusAndNamesTheClauseOfTheContractItself) {
    const std::string message = "the consumer exited with status 3; expected the record";
    EXPECT_EQ(symptom(FindingCode::ended_too_early, "E1", message, "E1").cause, "exit status 3");
    EXPECT_TRUE(symptom(FindingCode::ended_too_early, "E1", message, "E1").is_assumed);
    EXPECT_FALSE(symptom(FindingCode::ended_too_early, "contract-4", message, "E1").is_assumed);
    EXPECT_FALSE(
        symptom(FindingCode::ended_too_early, "contract-1", message, "contract-1").is_assumed);
}

TEST(Symptom, AWrongRecordIsItsFields) {
    const Symptom found = symptom(
        FindingCode::misread_event, "E10",
        "CPU 0: the consumer delivered event 1 (type \"t\", 64 bytes, position 0) with timestamp 1 "
        "instead of 2, type \"a\" instead of \"b\"; expected the emitted content",
        "E10");
    EXPECT_EQ(found.cause, "a record with another timestamp, type");
    EXPECT_TRUE(found.is_assumed);
}

TEST(Symptom, ARefusalIsItsReasonAndAKeptBufferItsFault) {
    const Symptom refused = symptom(
        FindingCode::refused_without_reason, "5.1.1",
        "CPU 0: the consumer refused a sound buffer (\"size 12\"); expected its events", "5.1.1");
    EXPECT_EQ(refused.cause, "a refusal: \"size \"");
    const Symptom kept = symptom(
        FindingCode::not_refused, "E14",
        "CPU 0: the consumer keeps a malformed buffer (capacity 69632); expected an R record",
        "E14");
    EXPECT_EQ(kept.cause, "a malformed buffer kept: capacity");
    EXPECT_TRUE(kept.is_assumed);
}

TEST(Symptom, AStandstillIsOneWhateverTimeItTook) {
    const Symptom found =
        symptom(FindingCode::missing_event, "E20",
                "CPU 0: the consumer does not deliver event 2 (70 bytes); expected "
                "its record. Evidence: the consumer still runs after 30000 ms",
                "E20");
    EXPECT_EQ(found.cause, "a standstill: the consumer still runs after  ms");
}

TEST(Symptom, WhatACaseItselfBlamesHasItsClause) {
    const Symptom found = symptom(FindingCode::contract, "E3", "it is wrong", "E3");
    EXPECT_EQ(found.cause, "");
    EXPECT_FALSE(found.is_assumed);
}

TEST(Symptom, ALostWakeUpNamesItsClauseUnlessTheEventIsOld) {
    EXPECT_FALSE(symptom(FindingCode::lost_wake_up, "E2", "m", "E2").is_assumed);
    EXPECT_FALSE(symptom(FindingCode::lost_wake_up, "E2", "m", "5.1.6.1").is_assumed);
    EXPECT_TRUE(symptom(FindingCode::lost_wake_up, "5.1.6.1", "m", "5.1.6.1").is_assumed);
}

TEST(Symptom, AWrongMappingLooksTheSameEverywhere) {
    const Symptom found = symptom(FindingCode::wrong_mapping, "contract-2", "m", "5.1.5");
    EXPECT_EQ(found.cause, "wrong-mapping");
    EXPECT_FALSE(found.is_assumed);
}

TEST(SymptomTest, TheReasonIsWhatTheTraceHasShown) {
    EXPECT_EQ(root_of("it refused; the cause: the consumer reads 29 bytes; 5 is where it would be "
                      "with the capacity of buffer 1 (64 bytes)"),
              kCapacityOfAnotherBuffer);
    EXPECT_EQ(root_of("it refused"), "");
    EXPECT_EQ(clause_of_root(kCapacityOfAnotherBuffer), "5.1.8.3");
}

}  // namespace
}  // namespace kmes::conformance
