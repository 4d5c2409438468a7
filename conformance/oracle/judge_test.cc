// SPDX-License-Identifier: MIT
//
// Tests of the judge: it finds every fault in a hand-made history, and passes a correct report that
// is close to it.
#include "conformance/oracle/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

EventSpec spec_of(std::string type, std::string payload = "", std::uint64_t timestamp = 5) {
    return {std::move(type), std::move(payload), timestamp, 1, ""};
}

// A driver and a testee in one: it applies operations to the history, and writes lines of the
// report.
class TestRun {
  public:
    explicit TestRun(std::uint64_t capacity = 256, std::uint32_t cpus = 1)
        : history(make_settings(capacity, cpus)) {
        history.note_attached_all();
    }

    // The report is `pos()` bytes long when the next operation begins.
    std::uint64_t pos() const { return text_.size(); }
    void sync() { history.set_report_bytes(pos()); }

    std::uint64_t emit(std::uint32_t cpu, const EventSpec& spec) {
        sync();
        return history.emit(cpu, spec).sequence;
    }
    std::uint64_t emit_bytes(std::uint32_t cpu, std::uint64_t bytes, char fill = 'p') {
        return emit(cpu, spec_of("t", std::string(bytes - 30, fill)));
    }
    BufferIndex swap(std::uint32_t cpu, std::uint64_t capacity, bool attach = true) {
        sync();
        const BufferIndex fresh = history.swap(cpu, {capacity, PositionRule::keep, 0});
        if (attach) history.note_attached(fresh);
        return fresh;
    }
    void sleep(std::uint32_t cpu) {
        history.checkpoint_idle(cpu, history.present_buffer(cpu), pos());
    }

    void line(const std::string& text) { text_ += text + "\n"; }
    void deliver(std::uint32_t cpu, std::uint64_t sequence) {
        const Event& event = *history.find(cpu, sequence);
        deliver_as(cpu, sequence, event.type, event.length, event.digest());
    }
    void deliver_as(std::uint32_t cpu, std::uint64_t sequence, const std::string& type,
                    std::uint64_t length, std::uint64_t digest, std::uint64_t timestamp = 5,
                    unsigned origin = 1) {
        std::string hex;
        char buffer[40];
        for (const char byte : type) {
            std::snprintf(buffer, sizeof buffer, "%02x", static_cast<unsigned char>(byte));
            hex += buffer;
        }
        std::snprintf(buffer, sizeof buffer, "%016llx", static_cast<unsigned long long>(digest));
        line("E " + std::to_string(cpu) + " " + std::to_string(sequence) + " " +
             std::to_string(timestamp) + " " + std::to_string(origin) + " " + hex + " " +
             std::to_string(length) + " " + buffer);
    }

    std::vector<Finding> findings() const {
        RecordParser parser;
        parser.feed(text_);
        parser.finish();
        return judge(history, parser, options);
    }
    // Returns the only finding; fails the test if there is another number of them.
    Finding only() const {
        const std::vector<Finding> found = findings();
        EXPECT_EQ(found.size(), 1u);
        for (const Finding& finding : found) {
            if (found.size() > 1) ADD_FAILURE() << finding.message;
        }
        return found.empty() ? Finding{} : found[0];
    }
    void expect_clean() const {
        for (const Finding& finding : findings()) {
            ADD_FAILURE() << finding_name(finding.code) << ": " << finding.message;
        }
    }

    History history;
    JudgeOptions options;

  private:
    static HistorySettings make_settings(std::uint64_t capacity, std::uint32_t cpus) {
        HistorySettings settings;
        settings.capacity_bytes = capacity;
        settings.cpus = cpus;
        return settings;
    }
    std::string text_;
};

#define EXPECT_CODE(finding, expected) \
    EXPECT_EQ(finding_name((finding).code), finding_name(FindingCode::expected))

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

TEST(Judge, FindsAnEventOfABatchThatNeverEnded) {
    TestRun run;
    run.history.batch_begin(0);
    run.history.batch_add(0, spec_of("a"));
    run.deliver(0, 1);
    EXPECT_CODE(run.only(), early_event);
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
    const auto told = [&](const std::string& emitted, const std::string& delivered) {
        TestRun run;
        run.emit(0, spec_of(emitted, "hello"));
        run.deliver_as(0, 1, delivered, 5, 0xa430d84680aabd0b);
        return run.only().message;
    };
    EXPECT_THAT(told(begin + "left", begin + "right"),
                HasSubstr("type \"right\" (65 bytes) instead of \"left\" (64 bytes), from byte "
                          "60 on"));
    EXPECT_THAT(told(begin + "left", begin),
                HasSubstr("type nothing (60 bytes) instead of \"left\" (64 bytes), from byte "
                          "60 on"));
    EXPECT_THAT(told(begin + "left", "b"), HasSubstr("type \"b\" (1 byte) instead of \"aaa"));
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

TEST(Judge, MissesWhatLaysBehindTheTailAtTheFirstLook) {
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
    TestRun looked(512);
    looked.emit_bytes(0, 200);
    looked.emit_bytes(0, 100);
    looked.history.note_draining(0);
    looked.swap(0, 128);
    looked.line("G 0 2");
    looked.deliver(0, 2);
    EXPECT_EQ(looked.only().clause, "E10");
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
    for (const bool told : {false, true}) {
        TestRun run;
        run.emit(0, spec_of("a"));
        run.deliver(0, 1);
        run.sync();
        run.emit(0, spec_of("a"));
        run.swap(0, 512);
        constexpr std::uint64_t kLast = 22;
        for (std::uint64_t i = 3; i <= kLast; ++i) run.emit(0, spec_of("a"));
        if (told) run.line("G 0 2");
        run.deliver(0, 2);  // only the old buffer has it
        const std::uint64_t oldest = 6;
        run.line("L 0 3");
        for (std::uint64_t i = oldest; i <= kLast; ++i) run.deliver(0, i);
        if (told) {
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

TEST(Judge, MissesNothingBehindARefusal) {
    TestRun run;
    run.history.set_fault(0, BufferFault::magic, "magic");
    run.emit(0, spec_of("a"));
    run.line("R 0 bad magic");
    run.options.exited_with_zero = true;
    run.expect_clean();
}

TEST(Judge, WantsEveryCpuEndedBeforeTheExit) {
    TestRun run(256, 2);
    run.emit(0, spec_of(std::string(kEndEventType)));
    run.deliver(0, 1);
    run.options.exited_with_zero = true;
    EXPECT_CODE(run.only(), ended_too_early);
    EXPECT_EQ(run.only().cpu, 1u);
}

TEST(Judge, LooksAwayWhereContentIsTolerated) {
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

TEST(Judge, DoesNotMissWhatAnEarlyEventSkipped) {
    TestRun run;
    run.history.batch_begin(0);
    run.history.batch_add(0, spec_of("a"));
    run.history.batch_add(0, spec_of("a"));
    run.deliver(0, 2);
    EXPECT_CODE(run.only(), early_event);
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

TEST(Judge, BoundsTheFindingsOfAKind) {
    TestRun run;
    run.emit(0, spec_of("a"));
    for (int i = 0; i < 100; ++i) run.deliver(0, 1);
    const std::vector<Finding> found = run.findings();
    ASSERT_EQ(found.size(), 9u);
    EXPECT_EQ(found[8].message, "and 91 more of this kind (doubled-event)");
}

TEST(Progress, FollowsTheReport) {
    TestRun run(256, 2);
    RecordParser parser;
    Progress progress(run.history);
    EXPECT_EQ(progress.first_undelivered(0), nullptr);
    run.emit(0, spec_of("a"));
    run.emit(0, spec_of(std::string(kEndEventType)));
    ASSERT_NE(progress.first_undelivered(0), nullptr);
    EXPECT_EQ(progress.first_undelivered(0)->sequence, 1u);
    parser.feed("E 0 1 5 1 61 0 cbf29ce484222325\nE 0 99999 5 1 61 0 cbf29ce484222325\n");
    progress.update(parser);
    EXPECT_EQ(progress.last_sequence(0), 1u);
    EXPECT_EQ(progress.first_undelivered(0)->sequence, 2u);
    parser.feed("E 0 2 5 1 6b6d65732e636f6e666f726d616e63652e656e64 0 cbf29ce484222325\n");
    progress.update(parser);
    progress.update(parser);
    EXPECT_TRUE(progress.ended(0));
    EXPECT_EQ(progress.delivered_count(0), 3u);
    EXPECT_FALSE(progress.all_ended());
    parser.feed("R 1 no\nL 77 1\n");
    progress.update(parser);
    EXPECT_TRUE(progress.all_ended());
    EXPECT_TRUE(progress.refused(1));
}

TEST(Progress, OwesWhatWentToANewBuffer) {
    TestRun run;
    Progress progress(run.history);
    run.swap(0, 256, false);
    run.emit(0, spec_of("a"));
    ASSERT_NE(progress.first_undelivered(0), nullptr);
    EXPECT_EQ(progress.first_undelivered(0)->sequence, 1u);
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
