// SPDX-License-Identifier: MIT
//
// Reports with one mistake each: the problem names the line, the field, and the correct value. All
// bytes are written by hand.
#include "conformance/main/smoke_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "conformance/oracle/digest_mistake.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;

// Two CPUs. CPU 0 loses two events between the third and the fourth, and is resized.
class SmokeCheck : public ::testing::Test {
  protected:
    SmokeCheck() : history_(settings()) {
        history_.note_attached_all();
        emit(0, "smoke.twelve", "twelve bytes", 1, 1700000000123456789);
        emit(0, "smoke.nothing", "", 2, 1700000001123456789);
        emit(0, "sm\xc3\xb6ke", "\x80\xff\xfe\x01\xc3", 3, 1700000002123456789);
        history_.drop(0);
        history_.drop(0);
        emit(0, "x", "longer", 0, 1700000003123456789, "extra");
        history_.swap(0, SwapSpec{131072, PositionRule::keep, 0});
        history_.swap(1, SwapSpec{131072, PositionRule::keep, 0});
        history_.note_attached_all();
        emit(1, "s", "", 0, 1700000004123456789);
        emit(1, "kmes.conformance.end", "", 0, 1700000005123456789);
        emit(1, "behind", "", 0, 1700000006123456789);
        emit(0, "kmes.conformance.end", "", 0, 1700000007123456789);
    }

    static HistorySettings settings() {
        HistorySettings settings;
        settings.cpus = 2;
        return settings;
    }

    void emit(std::uint32_t cpu, std::string type, std::string payload, std::uint8_t origin,
              std::uint64_t timestamp, std::string extra = "") {
        EventSpec spec;
        spec.type = std::move(type);
        spec.payload = std::move(payload);
        spec.origin = origin;
        spec.timestamp = timestamp;
        spec.extra_header = std::move(extra);
        history_.emit(cpu, spec);
    }

    std::vector<LineProblem> check() const {
        std::string report;
        for (const std::string& line : lines_) report += line + "\n";
        return check_report(history_, report);
    }

    // Replaces line `number` of the report, so that only this line is wrong.
    LineProblem with(std::size_t number, const std::string& line) {
        const std::string right = lines_.at(number - 1);
        lines_[number - 1] = line;
        const std::vector<LineProblem> problems = check();
        lines_[number - 1] = right;
        EXPECT_EQ(problems.size(), 1u) << line;
        if (problems.empty()) return {};
        EXPECT_EQ(problems[0].line, number) << problems[0].what;
        EXPECT_THAT(problems[0].is, HasSubstr(line.substr(0, 40)));
        return problems[0];
    }

    History history_;
    std::vector<std::string> lines_ = {
        "G 0 1",
        "E 0 1 1700000000123456789 1 736d6f6b652e7477656c7665 12 0f0ac21cce75b4bf",
        "E 0 2 1700000001123456789 2 736d6f6b652e6e6f7468696e67 0 cbf29ce484222325",
        "E 0 3 1700000002123456789 3 736dc3b66b65 5 4a678431f8b97626",
        "L 0 2",
        "E 0 6 1700000003123456789 0 78 6 9da66b738ed71cf0",
        "G 0 2",
        "G 1 2",
        "E 1 1 1700000004123456789 0 73 0 cbf29ce484222325",
        "E 1 2 1700000005123456789 0 6b6d65732e636f6e666f726d616e63652e656e64 0 cbf29ce484222325",
        "E 0 7 1700000007123456789 0 6b6d65732e636f6e666f726d616e63652e656e64 0 cbf29ce484222325",
    };
};

TEST_F(SmokeCheck, FindsNothingInARightReport) {
    EXPECT_TRUE(check().empty());
    lines_.insert(lines_.begin() + 3, "# a comment");
    lines_.erase(lines_.begin());  // optional after the first mapping
    EXPECT_TRUE(check().empty());
    std::erase(lines_, "L 0 2");  // optional if it is never written
    EXPECT_TRUE(check().empty());
}

TEST_F(SmokeCheck, NamesTheMistakeInADigest) {
    const std::string before = "E 0 1 1700000000123456789 1 736d6f6b652e7477656c7665 12 ";
    const LineProblem first = with(2, before + "d4a876ac73c7a79b");
    EXPECT_EQ(first.what,
              "field 7 (digest) is \"d4a876ac73c7a79b\", FNV-1 of the payload (multiplies first); "
              "FNV-1a takes the byte first; FNV-1a of the 12 payload bytes is 0f0ac21cce75b4bf");
    EXPECT_EQ(first.right, lines_[1]);
    EXPECT_THAT(with(2, before + "0F0AC21CCE75B4BF").what,
                HasSubstr("the right digest in upper case"));
    EXPECT_THAT(with(2, before + "f0ac21cce75b4bf").what,
                HasSubstr("the right digest without its leading zeros"));
    EXPECT_THAT(with(2, before + "0x0f0ac21cce75b4bf").what,
                HasSubstr("the right digest with 0x before it"));
    EXPECT_THAT(with(2, before + "1083892089314718911").what,
                HasSubstr("the right digest in decimal"));
    EXPECT_THAT(with(2, before + "bfb475ce1cc20a0f").what,
                HasSubstr("the right digest with its bytes in the other order"));
    EXPECT_THAT(with(2, before + "482ee6dcbb083d95").what, HasSubstr("of the whole event"));
    EXPECT_THAT(with(2, before + "433494277aa898fd").what, HasSubstr("FNV-1a of the type;"));
    EXPECT_THAT(with(2, before + "425d0094f54b02b6").what, HasSubstr("without its last byte"));
    EXPECT_THAT(with(2, before + "04fc95f2d202208d").what, HasSubstr("a zero byte after it"));
    EXPECT_THAT(with(2, before + "0048b165218f1b3a").what, HasSubstr("offset basis 0"));
    EXPECT_THAT(with(2, before + "1c1aff35ce75b4bf").what, HasSubstr("prime 1000001b3"));
    EXPECT_THAT(with(2, before + "9226bc6208f23a75").what, HasSubstr("1469598103934665603"));
    EXPECT_THAT(with(2, before + "1cbad0bf").what, HasSubstr("the 32-bit FNV-1a"));
    EXPECT_THAT(with(2, before + "0123456789abcdef").what,
                HasSubstr("is \"0123456789abcdef\"; FNV-1a of the 12 payload bytes"));
    EXPECT_THAT(with(4, "E 0 3 1700000002123456789 3 736dc3b66b65 5 02f4e1c747835026").what,
                HasSubstr("bytes that have a sign"));
    EXPECT_THAT(with(6, "E 0 6 1700000003123456789 0 78 6 908d43e584d11f1c").what,
                HasSubstr("the payload begins at header_size"));
}

TEST_F(SmokeCheck, NamesTheMistakeInAnyOtherField) {
    const std::string end = " 12 0f0ac21cce75b4bf";
    EXPECT_THAT(with(2, "E 1 1 1700000000123456789 1 736d6f6b652e7477656c7665" + end).what,
                HasSubstr("field 1 (cpu) is \"1\", counted from 1; the event is of CPU 0"));
    EXPECT_THAT(with(2, "E 0 0 1700000000123456789 1 736d6f6b652e7477656c7665" + end).what,
                HasSubstr("field 2 (sequence) is \"0\", counted from 0"));
    EXPECT_THAT(with(2, "E 0 1 1700000000123456 1 736d6f6b652e7477656c7665" + end).what,
                HasSubstr("field 3 (timestamp) is \"1700000000123456\", microseconds; the event's "
                          "timestamp is 1700000000123456789 ns"));
    EXPECT_THAT(with(2, "E 0 1 1700000000 1 736d6f6b652e7477656c7665" + end).what,
                HasSubstr("\"1700000000\", seconds"));
    EXPECT_THAT(with(2, "E 0 1 1700000000123456789 KMES 736d6f6b652e7477656c7665" + end).what,
                HasSubstr("field 4 (origin) is \"KMES\", no decimal number"));
    EXPECT_THAT(with(2, "E 0 1 1700000000123456789 1 smoke.twelve" + end).what,
                HasSubstr("field 5 (type) is \"smoke.twelve\", the type as text"));
    EXPECT_THAT(with(2, "E 0 1 1700000000123456789 1 736D6F6B652E7477656C7665" + end).what,
                HasSubstr("the right digits in upper case"));
    EXPECT_THAT(with(2, "E 0 1 1700000000123456789 1 736d6f6b652e7477656c766500" + end).what,
                HasSubstr("a zero byte after it"));
    EXPECT_THAT(with(2,
                     "E 0 1 1700000000123456789 1 736d6f6b652e7477656c7665 53 "
                     "0f0ac21cce75b4bf")
                    .what,
                HasSubstr("field 6 (length) is \"53\", the length of the whole event; the payload "
                          "has 12 bytes (event_size 53 - header_size 41)"));
    EXPECT_THAT(with(6, "E 0 6 1700000003123456789 0 78 11 9da66b738ed71cf0").what,
                HasSubstr("the payload begins at header_size"));
    EXPECT_THAT(with(2, "E 00 1 1700000000123456789 1 736d6f6b652e7477656c7665" + end).what,
                HasSubstr("field 1 (cpu) is \"00\", with leading zeros"));
}

TEST_F(SmokeCheck, NamesTwoWrongFieldsOfALine) {
    const LineProblem problem =
        with(2, "E 0 1 1700000000123 1 736d6f6b652e7477656c7665 53 0f0ac21cce75b4bf");
    EXPECT_THAT(problem.what, HasSubstr("field 3 (timestamp) is \"1700000000123\", milliseconds"));
    EXPECT_THAT(problem.what, HasSubstr("field 6 (length)"));
}

TEST_F(SmokeCheck, NamesALineOfAnotherShape) {
    EXPECT_THAT(with(2, lines_[1] + " ").what, HasSubstr("there is more after the last field"));
    EXPECT_THAT(with(2, lines_[1] + "\r").what, HasSubstr("CR LF"));
    EXPECT_THAT(with(2,
                     "E  0 1 1700000000123456789 1 736d6f6b652e7477656c7665 12 "
                     "0f0ac21cce75b4bf")
                    .what,
                HasSubstr("field <cpu> is empty"));
    EXPECT_THAT(with(5, "L 0").what, HasSubstr("field <count> is missing"));
    EXPECT_THAT(with(5, "Lost 0 2").what, HasSubstr("unknown record \"Lost\""));
    EXPECT_THAT(with(1, "").what, HasSubstr("the line is empty"));
}

TEST_F(SmokeCheck, NamesARecordThatIsNotThere) {
    lines_.erase(lines_.begin() + 2);
    std::vector<LineProblem> problems = check();
    ASSERT_EQ(problems.size(), 1u);
    EXPECT_EQ(problems[0].line, 0u);
    EXPECT_EQ(problems[0].what, "the record of event 2 of CPU 0, after line 2, is missing");
    EXPECT_EQ(problems[0].right,
              "E 0 2 1700000001123456789 2 736d6f6b652e6e6f7468696e67 0 cbf29ce484222325");
}

TEST_F(SmokeCheck, NamesADoubledRecordAndOneOutOfOrder) {
    lines_.insert(lines_.begin() + 3, lines_[2]);
    ASSERT_FALSE(check().empty());
    EXPECT_EQ(check()[0].line, 4u);
    EXPECT_EQ(check()[0].what, "event 2 of CPU 0 is in line 3 already; expected one record of it");
    lines_.erase(lines_.begin() + 3);
    std::swap(lines_[1], lines_[2]);
    ASSERT_FALSE(check().empty());
    EXPECT_EQ(check()[0].line, 3u);
    EXPECT_THAT(check()[0].what, HasSubstr("event 1 of CPU 0 follows event 2"));
}

TEST_F(SmokeCheck, NamesAnEventAfterTheEnd) {
    lines_.insert(lines_.begin() + 10,
                  "E 1 3 1700000006123456789 0 626568696e64 0 cbf29ce484222325");
    ASSERT_FALSE(check().empty());
    EXPECT_EQ(check()[0].line, 11u);
    EXPECT_THAT(check()[0].what,
                HasSubstr("follows the event kmes.conformance.end of CPU 1 (line 10)"));
}

TEST_F(SmokeCheck, NamesAWrongCountOfLostEvents) {
    const LineProblem wrong = with(5, "L 0 3");
    EXPECT_THAT(wrong.what, HasSubstr("field 2 (count) is 3; 2 events were lost between event 3 "
                                      "(line 4) and event 6 (line 6) of CPU 0"));
    EXPECT_EQ(wrong.right, "L 0 2");
    lines_.insert(lines_.begin() + 2, "L 0 1");
    ASSERT_FALSE(check().empty());
    EXPECT_EQ(check()[0].line, 3u);
    EXPECT_THAT(check()[0].what, HasSubstr("nothing was lost between event 1"));
}

TEST_F(SmokeCheck, NamesAWrongGeneration) {
    const LineProblem wrong = with(8, "G 1 7");
    EXPECT_THAT(wrong.what, HasSubstr("field 2 (generation) is 7; the u64 at byte 32"));
    EXPECT_EQ(wrong.right, "G 1 2");
}

TEST_F(SmokeCheck, NamesARefusalWithoutReason) {
    lines_.insert(lines_.begin() + 7, "R 1 bad magic");
    ASSERT_FALSE(check().empty());
    EXPECT_EQ(check()[0].line, 8u);
    EXPECT_THAT(check()[0].what, HasSubstr("refuses the sound buffer"));
}

TEST_F(SmokeCheck, NamesARefusalThatIsNotThere) {
    history_.set_fault(history_.current_buffer(1), BufferFault::magic, "bad magic");
    std::erase_if(lines_, [](const std::string& line) { return line.compare(2, 1, "1") == 0; });
    lines_.push_back("R 1 it is not ours");
    EXPECT_TRUE(check().empty());
    lines_.pop_back();
    ASSERT_FALSE(check().empty());
    EXPECT_THAT(check()[0].what, HasSubstr("expected an R record"));
    EXPECT_EQ(check()[0].right, "R 1 bad magic");
}

TEST_F(SmokeCheck, WantsANewlineAfterTheLastRecord) {
    std::string report;
    for (const std::string& line : lines_) report += line + "\n";
    report.pop_back();
    const std::vector<LineProblem> problems = check_report(history_, report);
    ASSERT_FALSE(problems.empty());
    EXPECT_EQ(problems[0].line, 11u);
    EXPECT_THAT(problems[0].what, HasSubstr("expected a newline at the end of each record"));
}

TEST(ExplainDigest, SaysNothingOfWhatItDoesNotKnow) {
    const EventSpec event{"t", "payload", 1, 0, ""};
    for (const char* field : {"", "-", "zz", "0123456789abcdef", "99999999999999999999999"}) {
        EXPECT_EQ(explain_digest(field, event, 1, 0), "") << field;
    }
}

}  // namespace
}  // namespace kmes::conformance
