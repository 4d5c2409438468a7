// SPDX-License-Identifier: MIT
//
// Tests of the judge: the bytes of a delivered event. The judge names different clauses for a
// misread event, an event that was overwritten during the copy, and an event in flight.
#include "conformance/oracle/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "conformance/oracle/judge_testing.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;

// A consumer reads an event in flight, and writes its record after the publication.
class ReadInFlight : public testing::Test {
  protected:
    // Two laps of old events, then an event in flight over the oldest. Returns its payload as in
    // the ring.
    std::string shown(Written written) {
        const std::string old(98, 'x');
        const std::string fresh(98, 'n');
        for (int i = 0; i < 4; ++i) run_.emit(0, spec_of("t", old));
        run_.history.reserve(0, 128, written);
        run_.emit(0, spec_of("t", fresh));
        const std::size_t there = written == Written::half ? fresh.size() / 2 : 0;
        return fresh.substr(0, there) + old.substr(there);
    }
    void deliver(const std::string& payload) {
        run_.deliver_as(0, 5, "t", payload.size(), fnv1a(payload));
    }

    TestRun run_;
};

TEST_F(ReadInFlight, IsFoundThoughItsRecordComesLate) {
    run_.options.clause = "E20";
    deliver(shown(Written::header));
    const std::vector<Finding> findings = run_.findings();
    ASSERT_FALSE(findings.empty());
    EXPECT_CODE(findings[0], torn_event);
    EXPECT_EQ(findings[0].clause, "E20");
    EXPECT_THAT(findings[0].message,
                HasSubstr("the payload is what the ring held while only the header was written, "
                          "before write_pos covered the event"));
}

TEST_F(ReadInFlight, IsFoundInAHalfOfThePayload) {
    deliver(shown(Written::half));
    const std::vector<Finding> findings = run_.findings();
    ASSERT_FALSE(findings.empty());
    EXPECT_CODE(findings[0], torn_event);
    EXPECT_EQ(findings[0].clause, "5.1.8.1-1");
    EXPECT_THAT(findings[0].message, HasSubstr("the header and half of the payload were written"));
}

TEST_F(ReadInFlight, IsFoundWhereThePublicationCameDuringTheCopy) {
    const std::string early = shown(Written::header);
    deliver(early.substr(0, 40) + std::string(58, 'n'));
    const std::vector<Finding> findings = run_.findings();
    ASSERT_FALSE(findings.empty());
    EXPECT_CODE(findings[0], torn_event);
    EXPECT_THAT(findings[0].message, HasSubstr("the first 40 bytes of the payload are what"));
}

TEST_F(ReadInFlight, IsNotSaidOfOneThatIsReadWhole) {
    shown(Written::header);
    run_.deliver(0, 4);
    run_.deliver(0, 5);
    run_.sleep(0);
    run_.expect_clean();
}

TEST_F(ReadInFlight, IsNotSaidOfAnotherMisread) {
    shown(Written::header);
    deliver(std::string(98, 'z'));
    const std::vector<Finding> findings = run_.findings();
    ASSERT_FALSE(findings.empty());
    EXPECT_CODE(findings[0], misread_event);
}

// The first event of the batch is whole, of the second one only the header is written.
TEST(Judge, FindsAnEventOfABatchThatWasReadInFlight) {
    TestRun run;
    for (int i = 0; i < 4; ++i) run.emit(0, spec_of("t", std::string(34, 'x')));
    run.history.batch_begin(0, {Written::header, 1});
    for (int i = 0; i < 2; ++i) run.history.batch_add(0, spec_of("t", std::string(34, 'n')));
    run.sync();
    run.history.batch_end(0);
    EXPECT_EQ(run.history.find(0, 5)->in_flight, Written::whole);
    EXPECT_EQ(run.history.find(0, 6)->in_flight, Written::header);
    run.deliver(0, 5);
    run.deliver_as(0, 6, "t", 34, fnv1a(std::string(34, 'x')));
    const std::vector<Finding> findings = run.findings();
    ASSERT_FALSE(findings.empty());
    EXPECT_CODE(findings[0], torn_event);
    EXPECT_EQ(findings[0].sequence, 6u);
    EXPECT_THAT(findings[0].message, HasSubstr("only the header was written"));
}

TEST(Judge, NamesEachFieldOfAMisreadEvent) {
    TestRun run;
    run.emit(0, spec_of("a", "hello"));
    run.deliver_as(0, 1, "b", 4, 1, 6, 2);
    const Finding finding = run.only();
    EXPECT_CODE(finding, misread_event);
    EXPECT_EQ(finding.clause, "event-model");
    EXPECT_EQ(
        finding.message,
        "CPU 0: the consumer delivered event 1 (type \"a\", 35 bytes, position 0) with "
        "timestamp 6 instead of 5, origin 2 instead of 1, type \"b\" instead of \"a\", "
        "payload length 4 instead of 5, payload digest 0000000000000001 instead of "
        "a430d84680aabd0b; expected the emitted content, which nothing had overwritten (line 1 "
        "of the report)");
}

TEST(Judge, QuotesLongTypesWhereTheyDiffer) {
    const std::string begin(60, 'a');
    const auto explanation = [&](const std::string& emitted, const std::string& delivered) {
        TestRun run;
        run.emit(0, spec_of(emitted, "hello"));
        run.deliver_as(0, 1, delivered, 5, 0xa430d84680aabd0b);
        return run.only().message;
    };
    EXPECT_THAT(explanation(begin + "left", begin + "right"),
                HasSubstr("type \"right\" (65 bytes) instead of \"left\" (64 bytes), from byte "
                          "60 on"));
    EXPECT_THAT(explanation(begin + "left", begin),
                HasSubstr("type nothing (60 bytes) instead of \"left\" (64 bytes), from byte "
                          "60 on"));
    EXPECT_THAT(explanation(begin + "left", "b"),
                HasSubstr("type \"b\" (1 byte) instead of \"aaa"));
}

TEST(Judge, TellsATornEventFromAMisreadOne) {
    TestRun run;
    run.emit_bytes(0, 128, 'a');
    run.emit_bytes(0, 128, 'b');
    run.emit_bytes(0, 128, 'c');  // overwrites event 1
    run.deliver_as(0, 1, "t", 98, 1);
    run.deliver_as(0, 2, "t", 98, 1);
    run.deliver(0, 3);
    const std::vector<Finding> findings = run.findings();
    ASSERT_EQ(findings.size(), 2u);
    EXPECT_CODE(findings[0], torn_event);
    EXPECT_EQ(findings[0].clause, "5.1.8.1-5");
    EXPECT_EQ(findings[0].sequence, 1u);
    EXPECT_CODE(findings[1], misread_event);
    EXPECT_EQ(findings[1].sequence, 2u);
    // The event was delivered before it was overwritten, so it is not torn.
    TestRun late;
    late.emit_bytes(0, 128, 'a');
    late.emit_bytes(0, 128, 'b');
    late.deliver_as(0, 1, "t", 98, 1);
    late.deliver(0, 2);
    late.emit_bytes(0, 128, 'c');
    late.deliver(0, 3);
    EXPECT_CODE(late.only(), misread_event);
}

TEST(Judge, KnowsTheDigestsThatAdaptersGetWrong) {
    TestRun run;
    run.options.clause = "5.1.1";
    run.emit(0, spec_of("a", "hello"));
    run.deliver_as(0, 1, "a", 5, fnv1a(""));
    EXPECT_EQ(run.only().clause, "contract-records");
    EXPECT_THAT(run.only().message, HasSubstr("the digest is FNV-1a of no bytes at all"));
}

TEST(Judge, SaysHowLongATypeIsThatItCannotShow) {
    TestRun run;
    run.emit(0, spec_of(std::string(60, 'k')));
    run.deliver_as(0, 1, std::string(50, 'k'), 0, fnv1a(""));
    EXPECT_THAT(run.only().message, HasSubstr("(50 bytes) instead of"));
    EXPECT_THAT(run.only().message, HasSubstr("(60 bytes)"));
}

TEST(Judge, SaysWhoseBytesAPayloadIs) {
    TestRun run;
    run.emit(0, spec_of("a", "hello"));
    run.emit(0, spec_of("a", "other"));
    run.deliver_as(0, 1, "a", 5, fnv1a("other"));
    run.deliver(0, 2);
    EXPECT_THAT(run.only().message, HasSubstr("the payload is that of event 2"));
}

TEST(Judge, SaysWithWhatATornPayloadWasMixed) {
    for (const bool overwritten_first : {true, false}) {
        TestRun run;
        run.emit_bytes(0, 128, 'a');  // at 0
        run.emit_bytes(0, 128, 'b');  // at 128
        run.emit_bytes(0, 128, 'c');  // at 256, overwrites event 1
        const std::string a(60, 'a');
        const std::string c(38, 'c');
        const std::string torn =
            overwritten_first ? c + a : std::string(38, 'a') + std::string(60, 'c');
        run.deliver_as(0, 1, "t", 98, fnv1a(torn));
        run.deliver(0, 2);
        run.deliver(0, 3);
        const Finding finding = run.only();
        EXPECT_CODE(finding, torn_event);
        EXPECT_THAT(
            finding.message,
            HasSubstr(overwritten_first ? "the first 38 bytes of the payload are those of event 3"
                                        : "right up to byte 38, and then that of event 3"));
    }
}

TEST(Judge, FindsAPayloadThatWasReadFromTheWrongPlace) {
    TestRun run;
    EventSpec spec = spec_of("a", "hello");
    spec.extra_header = "XX";
    run.emit(0, spec);
    run.deliver_as(0, 1, "a", 5, fnv1a("XXhel"));
    const Finding finding = run.only();
    EXPECT_EQ(finding.clause, "event-model");
    EXPECT_THAT(finding.message, HasSubstr("read from byte 30 of the event (29 + type_len), but "
                                           "begins at header_size, 32"));
    TestRun right;
    right.emit(0, spec);
    right.deliver(0, 1);
    right.expect_clean();
}

TEST(Judge, FindsTheWrongCpu) {
    TestRun run(256, 2);
    run.emit(0, spec_of("a", "zero"));
    run.emit(1, spec_of("b", "one"));
    run.emit(1, spec_of("b", "two"));
    run.deliver_as(0, 1, "b", 3, fnv1a("one"));
    run.deliver_as(0, 2, "b", 3, fnv1a("two"));
    const std::vector<Finding> found = run.findings();
    ASSERT_EQ(found.size(), 2u);
    EXPECT_CODE(found[0], wrong_cpu);
    EXPECT_THAT(found[0].message, HasSubstr("with the content of CPU 1's"));
    EXPECT_CODE(found[1], wrong_cpu);
    EXPECT_THAT(found[1].message, HasSubstr("of CPU 1 on this CPU"));
}

TEST(Judge, FindsEachFieldThatIsWrongAlone) {
    TestRun right;
    right.emit(0, spec_of("a", "hello"));
    right.deliver_as(0, 1, "a", 5, fnv1a("hello"), 5, 1);
    right.expect_clean();
    struct Wrong {
        const char* type;
        std::uint64_t length;
        std::uint64_t digest;
        std::uint64_t timestamp;
        unsigned origin;
    };
    const std::uint64_t digest = fnv1a("hello");
    for (const Wrong& wrong : {Wrong{"b", 5, digest, 5, 1}, Wrong{"a", 6, digest, 5, 1},
                               Wrong{"a", 5, digest + 1, 5, 1}, Wrong{"a", 5, digest, 6, 1},
                               Wrong{"a", 5, digest, 5, 2}, Wrong{"a", 5, digest, 5, 257}}) {
        TestRun run;
        run.emit(0, spec_of("a", "hello"));
        run.deliver_as(0, 1, wrong.type, wrong.length, wrong.digest, wrong.timestamp, wrong.origin);
        EXPECT_CODE(run.only(), misread_event);
    }
}

}  // namespace
}  // namespace kmes::conformance
