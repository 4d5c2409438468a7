// SPDX-License-Identifier: MIT
//
// Tests of the record parser: the grammar of the testee contract, and hostile input.
#include "conformance/oracle/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;

const std::string kRightEvent = "E 3 17 1700000000000000001 1 612e62 5 a430d84680aabd0b";

std::string error_of(std::string_view line) {
    Record record;
    return parse_record_line(line, record);
}

TEST(RecordLine, ReadsAnEvent) {
    Record record;
    ASSERT_EQ(parse_record_line(kRightEvent, record), "");
    EXPECT_EQ(record.kind, RecordKind::event);
    EXPECT_EQ(record.cpu, 3u);
    EXPECT_EQ(record.sequence, 17u);
    EXPECT_EQ(record.timestamp, 1700000000000000001u);
    EXPECT_EQ(record.origin, 1u);
    EXPECT_EQ(record.type, "a.b");
    EXPECT_EQ(record.length, 5u);
    EXPECT_EQ(record.digest, 0xa430d84680aabd0bu);
}

TEST(RecordLine, ReadsLostGenerationRefusalAndComment) {
    Record record;
    ASSERT_EQ(parse_record_line("L 0 18446744073709551615", record), "");
    EXPECT_EQ(record.kind, RecordKind::lost);
    EXPECT_EQ(record.count, 18446744073709551615u);
    ASSERT_EQ(parse_record_line("G 63 2", record), "");
    EXPECT_EQ(record.kind, RecordKind::generation);
    EXPECT_EQ(record.cpu, 63u);
    EXPECT_EQ(record.generation, 2u);
    ASSERT_EQ(parse_record_line("R 1 bad magic, really  bad", record), "");
    EXPECT_EQ(record.kind, RecordKind::refusal);
    EXPECT_EQ(record.text, "bad magic, really  bad");
    ASSERT_EQ(parse_record_line("# E 1 \xff", record), "");
    EXPECT_EQ(record.kind, RecordKind::comment);
    EXPECT_EQ(record.text, "E 1 \xff");
}

TEST(RecordLine, NamesTheFieldThatIsMissing) {
    EXPECT_THAT(error_of("E"), HasSubstr("<cpu> is missing"));
    EXPECT_THAT(error_of("E 3"), HasSubstr("<sequence> is missing"));
    EXPECT_THAT(error_of("E 3 17 5 1 61 0"), HasSubstr("<digest> is missing"));
    EXPECT_THAT(error_of("L 3"), HasSubstr("<count> is missing"));
    EXPECT_THAT(error_of("G 3"), HasSubstr("<generation> is missing"));
    EXPECT_THAT(error_of("R 3"), HasSubstr("<reason> is missing"));
}

TEST(RecordLine, SaysWhatIsWrongWithANumber) {
    EXPECT_THAT(error_of("L 0 +1"), HasSubstr("\"+1\", which is no decimal number"));
    EXPECT_THAT(error_of("L 0 -1"), HasSubstr("<count> is \"-1\""));
    EXPECT_THAT(error_of("L 0 01"), HasSubstr("has leading zeros"));
    EXPECT_THAT(error_of("L 00 1"), HasSubstr("<cpu> is \"00\", which has leading zeros"));
    EXPECT_THAT(error_of("L 0 18446744073709551616"), HasSubstr("does not fit 64 bits"));
    EXPECT_THAT(error_of("L 0 99999999999999999999999999"), HasSubstr("does not fit 64 bits"));
    EXPECT_THAT(error_of("L 0 0x10"), HasSubstr("is no decimal number"));
    EXPECT_THAT(error_of("L 0 1.5"), HasSubstr("is no decimal number"));
    EXPECT_THAT(error_of(std::string_view("L 0 1\0", 6)), HasSubstr("\"1\\x00\""));
    EXPECT_EQ(error_of("L 0 0"), "");
}

TEST(RecordLine, WantsOneSpaceBetweenFields) {
    EXPECT_THAT(error_of("L  0 1"), HasSubstr("<cpu> is empty"));
    EXPECT_THAT(error_of("L 0  1"), HasSubstr("<count> is empty"));
    EXPECT_THAT(error_of("L 0 1 "), HasSubstr("more after the last field"));
    EXPECT_THAT(error_of(" L 0 1"), HasSubstr("unknown record \"\""));
    EXPECT_THAT(error_of("L\t0 1"), HasSubstr("unknown record \"L\\x090\""));
    EXPECT_THAT(error_of(kRightEvent + " 1"), HasSubstr("more after the last field: \"1\""));
    EXPECT_THAT(error_of("L "), HasSubstr("<cpu> is empty"));
}

TEST(RecordLine, WantsLowerCaseHexInPairs) {
    EXPECT_THAT(error_of("E 0 1 0 0 6A 0 cbf29ce484222325"), HasSubstr("upper-case"));
    EXPECT_THAT(error_of("E 0 1 0 0 616 0 cbf29ce484222325"), HasSubstr("odd number"));
    EXPECT_THAT(error_of("E 0 1 0 0 6g 0 cbf29ce484222325"), HasSubstr("contains \"g\""));
    EXPECT_THAT(error_of("E 0 1 0 0  0 cbf29ce484222325"), HasSubstr("<type> is empty"));
    EXPECT_THAT(error_of("E 0 1 0 0 61 0 cbf29ce48422232"), HasSubstr("15 characters"));
    EXPECT_THAT(error_of("E 0 1 0 0 61 0 cbf29ce4842223250"), HasSubstr("17 characters"));
    EXPECT_THAT(error_of("E 0 1 0 0 61 0 CBF29CE484222325"), HasSubstr("upper-case"));
    EXPECT_EQ(error_of("E 0 1 0 0 61 0 cbf29ce484222325"), "");
}

TEST(RecordLine, NamesCarriageReturnsEmptyLinesAndUnknownRecords) {
    EXPECT_THAT(error_of("L 0 1\r"), HasSubstr("CR LF"));
    EXPECT_THAT(error_of(""), HasSubstr("empty"));
    EXPECT_THAT(error_of("Segmentation fault"), HasSubstr("unknown record \"Segmentation\""));
    EXPECT_THAT(error_of("e 0 1"), HasSubstr("unknown record \"e\""));
    EXPECT_THAT(error_of("R 0 schlecht \xc3\xa4"),
                HasSubstr("\"\\xc3\"; expected a line of ASCII"));
}

TEST(RecordLine, TakesTheLongestTypeAndNoLonger) {
    const std::string longest(2 * 65535, 'a');
    Record record;
    ASSERT_EQ(parse_record_line("E 0 1 0 0 " + longest + " 0 cbf29ce484222325", record), "");
    EXPECT_EQ(record.type.size(), 65535u);
    EXPECT_THAT(error_of("E 0 1 0 0 aa" + longest + " 0 cbf29ce484222325"),
                HasSubstr("longer than 65535 bytes"));
}

TEST(QuoteBytes, EscapesAndBounds) {
    EXPECT_EQ(quote_bytes(std::string_view("a\"\\\n\0\x7f\xff", 7)), R"("a\"\\\x0a\x00\x7f\xff")");
    EXPECT_EQ(quote_bytes(std::string(200, 'x'), 3), "\"xxx\"...");
    EXPECT_EQ(quote_bytes("xxx", 3), "\"xxx\"");
}

TEST(RecordParser, ReadsAFileThatGrowsByteByByte) {
    RecordParser parser;
    const std::string text = kRightEvent + "\n# hello\nL 3 2\n";
    for (const char byte : text) parser.feed(std::string_view(&byte, 1));
    parser.finish();
    ASSERT_EQ(parser.records().size(), 2u);
    ASSERT_EQ(parser.comments().size(), 1u);
    EXPECT_EQ(parser.malformed_count(), 0u);
    EXPECT_EQ(parser.records()[0].begin_offset, 0u);
    EXPECT_EQ(parser.records()[0].end_offset, kRightEvent.size() + 1);
    EXPECT_EQ(parser.records()[1].line, 3u);
    EXPECT_EQ(parser.records()[1].end_offset, text.size());
    EXPECT_EQ(parser.comments()[0].text, "hello");
}

TEST(RecordParser, KeepsAPartialLineUntilItsEndComes) {
    RecordParser parser;
    parser.feed("L 0 1\nL 0 ");
    EXPECT_EQ(parser.records().size(), 1u);
    EXPECT_EQ(parser.partial_bytes(), 4u);
    parser.feed("2\n");
    ASSERT_EQ(parser.records().size(), 2u);
    EXPECT_EQ(parser.records()[1].count, 2u);
    EXPECT_EQ(parser.partial_bytes(), 0u);
    parser.finish();
    EXPECT_EQ(parser.malformed_count(), 0u);
}

TEST(RecordParser, CallsAPartialLineAtTheEndMalformed) {
    RecordParser parser;
    parser.feed("L 0 1\nL 0 2");
    parser.finish();
    parser.finish();
    EXPECT_EQ(parser.records().size(), 1u);
    ASSERT_EQ(parser.malformed().size(), 1u);
    EXPECT_EQ(parser.malformed_count(), 1u);
    EXPECT_EQ(parser.malformed()[0].message,
              "line 2 of the report: the report ends within a line; expected a newline at the end "
              "of every record: \"L 0 2\"");
}

TEST(RecordParser, QuotesTheMalformedLineAndGoesOn) {
    RecordParser parser;
    parser.feed("L 0 x\nL 0 1\n");
    parser.finish();
    EXPECT_EQ(parser.records().size(), 1u);
    ASSERT_EQ(parser.malformed().size(), 1u);
    EXPECT_EQ(parser.malformed()[0].line, 1u);
    EXPECT_EQ(
        parser.malformed()[0].message,
        "line 1 of the report: field <count> is \"x\", which is no decimal number; expected a "
        "decimal 64-bit number without sign or leading zeros in L <cpu> <count>: \"L 0 x\"");
}

TEST(RecordParser, FindsTheCpuOfAMalformedLine) {
    RecordParser parser;
    parser.feed("E 3 x\nL 18446744073709551615\nE 18446744073709551616 1\nE 3x 1\nE 3\nE\n E 3\n");
    parser.finish();
    const std::optional<std::uint64_t> none;
    const std::vector<std::optional<std::uint64_t>> cpus = {3, UINT64_MAX, none, none,
                                                            3, none,       none};
    ASSERT_EQ(parser.malformed().size(), cpus.size());
    for (std::size_t i = 0; i < cpus.size(); ++i)
        EXPECT_EQ(parser.malformed()[i].cpu, cpus[i]) << parser.malformed()[i].message;
}

TEST(RecordParser, BoundsALineThatNeverEnds) {
    RecordParser parser;
    const std::string block(1 << 20, 'E');
    for (int i = 0; i < 64; ++i) parser.feed(block);
    EXPECT_EQ(parser.partial_bytes(), 64u << 20);
    parser.feed("\nL 0 1\n");
    parser.finish();
    ASSERT_EQ(parser.malformed_count(), 1u);
    EXPECT_THAT(parser.malformed()[0].message, HasSubstr("the line has 67108864 bytes"));
    EXPECT_LT(parser.malformed()[0].message.size(), 400u);
    EXPECT_EQ(parser.records().size(), 1u);
    EXPECT_EQ(parser.records()[0].line, 2u);
}

TEST(RecordParser, CutsLongFreeTextWithoutBlame) {
    RecordParser parser;
    parser.feed("# " + std::string(1 << 20, 'x') + "\nR 0 " + std::string(1 << 20, 'y') + "\n");
    parser.finish();
    EXPECT_EQ(parser.malformed_count(), 0u);
    ASSERT_EQ(parser.comments().size(), 1u);
    EXPECT_EQ(parser.comments()[0].text.size(), kMaximumTextBytes);
    ASSERT_EQ(parser.records().size(), 1u);
    EXPECT_EQ(parser.records()[0].text.size(), kMaximumTextBytes);
}

TEST(RecordParser, EndsAFloodOfRecordsWithOneLine) {
    RecordLimits limits;
    limits.maximum_records = 10;
    RecordParser parser(limits);
    for (int i = 0; i < 1000; ++i) parser.feed("L 0 1\nL 0 1\n");
    parser.finish();
    EXPECT_TRUE(parser.flooded());
    EXPECT_EQ(parser.records().size(), 10u);
    EXPECT_EQ(parser.malformed_count(), 1u);
    EXPECT_THAT(parser.malformed()[0].message, HasSubstr("more than 10 records"));
    EXPECT_EQ(parser.bytes_fed(), 12000u);
}

TEST(RecordParser, EndsAFloodOfBytesWithOneLine) {
    RecordLimits limits;
    limits.maximum_report_bytes = 20;
    RecordParser parser(limits);
    for (int i = 0; i < 1000; ++i) parser.feed("L 0 1\n");
    parser.finish();
    EXPECT_EQ(parser.records().size(), 3u);
    ASSERT_EQ(parser.malformed_count(), 1u);
    EXPECT_THAT(parser.malformed()[0].message, HasSubstr("longer than 20 bytes"));
}

TEST(RecordParser, KeepsFewMalformedLinesAndCountsAll) {
    RecordParser parser;
    for (int i = 0; i < 5000; ++i) parser.feed("?\n\n");
    parser.finish();
    EXPECT_EQ(parser.malformed_count(), 10000u);
    EXPECT_EQ(parser.malformed().size(), 16u);
}

TEST(RecordParser, SurvivesEveryByteInEveryPlace) {
    for (std::size_t place = 0; place <= kRightEvent.size(); ++place) {
        for (int byte = 0; byte < 256; ++byte) {
            std::string line = kRightEvent;
            line.insert(line.begin() + static_cast<std::ptrdiff_t>(place), static_cast<char>(byte));
            RecordParser parser;
            parser.feed(line + "\n");
            parser.finish();
            EXPECT_GE(parser.records().size() + parser.comments().size() + parser.malformed_count(),
                      1u);
        }
    }
}

}  // namespace
}  // namespace kmes::conformance
