// SPDX-License-Identifier: MIT
//
// Tests of the reader of JSON reports, of the statement, and of SHA-256.
#include "conformance/report/json_read.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "conformance/report/json.h"
#include "conformance/report/json_extent.h"
#include "conformance/report/json_reader.h"
#include "conformance/report/sha256.h"
#include "conformance/report/statement.h"

namespace kmes::conformance {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CaseResult result_of(std::string id, Level level, Verdict verdict) {
    CaseResult result;
    result.id = std::move(id);
    result.level = level;
    result.verdict = verdict;
    result.clause = "E10";
    result.seconds = 0.125;
    return result;
}

CaseResult failure() {
    CaseResult result = result_of("E21/twice", Level::erratum, Verdict::fail);
    result.title = "twice";
    result.message = "CPU 0: event 1 was \xff delivered more than once\x01";
    result.what_is_done = "Emit.";
    result.what_is_right = "Deliver.";
    result.explored = Explored{7, 1.5, true};
    result.cause = "a sleep on an old event";
    result.is_clause_assumed = true;
    result.steps = 308'844;
    result.saved = "kept/E21-twice.json";
    result.is_known = true;
    result.findings.resize(2);
    result.findings[0].code = FindingCode::doubled_event;
    result.findings[0].cpu = 0;
    result.findings[1].sequence = 9;
    result.findings[1].line = 3;
    result.history = "one\ntwo\n";
    result.standard_error = "oh no";
    result.last_words = "oh no";
    result.trace.threads = {1};
    result.trace.has_several_cpus = true;
    result.trace.left_out = "CPU 3";
    result.trace.rows.resize(2);
    result.trace.rows[0].hidden = 5;
    result.trace.rows[1].number = 6;
    result.trace.rows[1].kind = StepKind::wait_begin;
    result.trace.rows[1].cpu = 0;
    result.trace.rows[1].clause = "5.1.8.2";
    result.trace.rows[1].place = "wait() consumer.c:209";
    result.trace.rows[1].change = "need_wake 0 -> 1";
    result.trace.rows[1].wakes = {1};
    result.trace.rows[1].decisive = true;
    result.trace.rows[1].why = "because";
    return result;
}

RunReport whole_report() {
    RunReport report;
    report.suite = {"0.20", "0123abcd", 1, 1};
    report.consumer = {"ring-reader", "1.2"};
    report.machine = {"Linux 6.1.0 x86_64", "A processor", 8};
    report.began = 1'795'718'400;
    report.options.filters = {"E*"};
    report.options.without = {"E3/*"};
    report.options.as_published = true;
    report.options.stream = "some events";
    report.options.device = "/dev/kmes";
    report.options.layout = "D";
    report.stepper = "guard pages";
    report.suite_cases = {1, 1, 1, 1};
    report.testee = {"./consumer", "two words"};
    report.cpus = 4;
    report.capacity_bytes = 65536;
    report.seed = UINT64_MAX;
    report.seconds = 2.5;
    report.shard = Shard{1, 2, {"5.1.8/drain", "E21/twice", "5.1.9/slow", "E7/none", "x/y"}};
    report.results = {result_of("5.1.8/drain", Level::must, Verdict::pass), failure(),
                      result_of("5.1.9/slow", Level::should, Verdict::inconclusive),
                      result_of("E7/none", Level::robust, Verdict::unsupported)};
    report.results[2].message = "too slow";
    report.results[3].message = "no device";
    report.not_run = {"x/y"};
    report.preflight = "  no event was delivered\n";
    report.interrupted = true;
    report.differences = {{"", "known lists \"E9/gone\", but there is no such case"},
                          {"5.1.8/drain", "5.1.8/drain passed, but known lists it"}};
    report.part_differences = {{"5.1.8/soak", "5.1.8/soak passed, but known lists it"}};
    return report;
}

// `merge` would lose or double such a case.
TEST(JsonRead, RefusesAShardWithOtherCasesThanItsOwn) {
    for (const auto& [change, wrong] :
         {std::pair<void (*)(Shard&), const char*>(
              [](Shard& shard) { shard.cases.push_back("x/y"); },
              "shard.cases[5] is \"x/y\"; expected an id that no other item has"),
          {[](Shard& shard) { shard.cases.erase(shard.cases.begin()); },
           "cases[0].id is \"5.1.8/drain\"; expected one of the cases of \"shard\""},
          {[](Shard& shard) { shard.cases.pop_back(); },
           "not_run[0] is \"x/y\"; expected one of the cases of \"shard\""}}) {
        RunReport report = whole_report();
        change(*report.shard);
        EXPECT_THAT(report_from_json(to_json(report)).error, HasSubstr(wrong));
    }
}

TEST(JsonRead, GivesTheSameReport) {
    const std::string text = to_json(whole_report());
    const ReadReport read = report_from_json(text);
    EXPECT_EQ(read.error, "");
    EXPECT_EQ(to_json(read.report), text);
    // `merge` prints it.
    EXPECT_TRUE(std::ranges::any_of(read.report.results, [](const CaseResult& result) {
        return result.last_words == "oh no";
    }));
}

// The report above must have every member of the schema, so that none is forgotten. `values`: the
// values of the report at this place.
void expect_members(const nlohmann::json& schema, const nlohmann::json& part,
                    const std::vector<nlohmann::json>& values, const std::string& place) {
    if (part.contains("$ref")) {
        const std::string reference = part["$ref"].get<std::string>().substr(1);
        const auto pointer = nlohmann::json::json_pointer(reference);
        return expect_members(schema, schema.at(pointer), values, place);
    }
    for (const auto& one : part.value("oneOf", nlohmann::json::array()))
        expect_members(schema, one, values, place);
    if (part.contains("items")) {
        std::vector<nlohmann::json> items;
        for (const auto& value : values) items.insert(items.end(), value.begin(), value.end());
        expect_members(schema, part["items"], items, place + "[]");
    }
    const nlohmann::json members = part.value("properties", nlohmann::json::object());
    for (const auto& member : members.items()) {
        std::vector<nlohmann::json> there;
        for (const auto& value : values) {
            if (value.contains(member.key())) there.push_back(value[member.key()]);
        }
        EXPECT_FALSE(there.empty()) << place + "." + member.key();
        expect_members(schema, member.value(), there, place + "." + member.key());
    }
}

TEST(JsonRead, IsTestedWithEveryMemberOfTheSchema) {
    std::ifstream file("conformance/report/report.schema.json");
    const nlohmann::json schema = nlohmann::json::parse(file);
    const std::vector<nlohmann::json> reports(1, nlohmann::json::parse(to_json(whole_report())));
    expect_members(schema, schema, reports, "report");
}

// Every member in turn is removed, renamed, or gets another type. None of these crashes, and each
// refusal is one line.
void expect_refusals(const nlohmann::json& whole, const nlohmann::json::json_pointer& place) {
    const nlohmann::json& value = whole.at(place);
    if (!value.is_structured()) return;
    for (const auto& item : value.items()) {
        const auto inner = place / item.key();
        for (const auto& other : {nlohmann::json(nullptr), nlohmann::json(-1),
                                  nlohmann::json("\x01 \x7f"), nlohmann::json::array({1}),
                                  nlohmann::json::object({{"a", 1}}), nlohmann::json(1e300)}) {
            nlohmann::json edited = whole;
            edited.at(inner) = other;
            const std::string error = report_from_json(edited.dump()).error;
            EXPECT_THAT(error, Not(HasSubstr("\n")));
            if (other.is_null()) {
                EXPECT_NE(error, "") << inner.to_string();
            }
        }
        expect_refusals(whole, inner);
    }
    if (!value.is_object()) return;
    nlohmann::json edited = whole;
    edited.at(place)["unknown"] = 1;
    EXPECT_NE(report_from_json(edited.dump()).error, "") << place.to_string();
}

TEST(JsonRead, RefusesWhatIsNoReport) {
    const std::string text = to_json(whole_report());
    expect_refusals(nlohmann::json::parse(text), nlohmann::json::json_pointer());
    for (std::size_t i = 0; i + 1 < text.size(); i += 7)  // but for the newline at its end
        EXPECT_NE(report_from_json(text.substr(0, i)).error, "") << i;
    nlohmann::json older = nlohmann::json::parse(text);
    older["schema"] = 1;
    EXPECT_EQ(report_from_json(older.dump()).error,
              "schema is 1; expected 2, the only schema that this suite reads");
}

TEST(JsonRead, LimitsTheMemoryOfAFile) {
    EXPECT_EQ(report_from_json(std::string(100000, '[')).error,
              "the file has lists and objects nested in 100000 levels; at most 16 are read");
    std::string text = "[";
    for (std::size_t i = 0; i < kMaximumReportValues; ++i) text += "0,";
    EXPECT_EQ(report_from_json(text).error,
              "the file has 4000002 values; at most 4000000 are read");
}

// Counts by parsing.
std::size_t values_of(const nlohmann::json& json) {
    std::size_t values = 1;
    if (!json.is_structured()) return values;
    for (const nlohmann::json& inner : json) values += values_of(inner);
    return values;
}

TEST(JsonReader, CountsValuesAndLevels) {
    for (const char* text : {"7", "[]", "[ ]", "{}", "[[]]", "[{}, []]", R"({"a": 1})",
                             R"({"a": {"b": [1, 2]}, "c": 3})", R"(["],[\"", "\\", "{"])",
                             R"({"\\": "[,,,", "x": [[[1], 2], {"y": null}]})"}) {
        EXPECT_EQ(json_extent(text).values, values_of(nlohmann::json::parse(text))) << text;
    }
    EXPECT_EQ(json_extent("7").depth, 0u);
    EXPECT_EQ(json_extent("[{}, [[1]], []]").depth, 3u);
    EXPECT_EQ(json_extent("]]]][").depth, 1u);
    EXPECT_EQ(json_extent("\"\\").depth, 0u);
}

TEST(JsonReader, ParsesUpToItsLimits) {
    const std::string deep = std::string(16, '[') + std::string(16, ']');
    EXPECT_NO_THROW(parse_json(deep, "--save", 16));
    EXPECT_THROW(parse_json(deep, "--save", 15), FormatError);
    EXPECT_THROW(parse_json("[" + deep + "]", "--save", 100), FormatError);
}

// A passed case that is known would be counted as passed and shown as skipped.
TEST(JsonRead, RefusesAKnownFailureThatIsNone) {
    nlohmann::json edited = nlohmann::json::parse(to_json(whole_report()));
    edited["cases"][0]["known"] = true;
    EXPECT_EQ(report_from_json(edited.dump()).error,
              "cases[0].known is true; expected no such member, because only a failure can be "
              "known");
}

TEST(JsonRead, RefusesASummaryThatIsNotThatOfTheCases) {
    nlohmann::json edited = nlohmann::json::parse(to_json(whole_report()));
    edited["summary"]["fail"] = 0;
    EXPECT_EQ(report_from_json(edited.dump()).error,
              "summary.fail is 0; expected 1, the number of such cases in the file");
    edited = nlohmann::json::parse(to_json(whole_report()));
    edited["cases"][1]["id"] = "5.1.8/drain";
    EXPECT_THAT(report_from_json(edited.dump()).error, HasSubstr("cases[1].id is"));
}

TEST(Statement, SaysWhatIsPassedAndWhatIsNot) {
    RunReport report = whole_report();
    report.seed = 7;
    report.options = {};
    EXPECT_EQ(to_statement(report, "{}\n"), R"(KMES conformance statement, format 1

consumer:      ring-reader
version:       1.2
program:       ./consumer 'two words'
suite:         kmes-conformance 0.20, commit 0123abcd
ring format:   1
contract:      1
date:          2026-11-26T18:40:00Z
kernel:        Linux 6.1.0 x86_64
processor:     8 x A processor
options:       --level erratum --cpus 4 --capacity 65536 --seed 7 --explore quick

must:          passed (1 of 1 cases ran: 1 passed)
should:        not decided (1 of 1 cases ran: 0 passed, 1 inconclusive)
erratum:       not passed (1 of 1 cases ran: 0 passed, 1 failed)
robust:        not decided (1 of 1 cases ran: 0 passed, 1 unsupported)

failed:
  E21/twice [E10] CPU 0: event 1 was \xff delivered more than once\x01

inconclusive:
  5.1.9/slow [E10] too slow

unsupported on this machine:
  E7/none [E10] no device

not run:
  x/y

json report:   sha256:ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356
)");
}

TEST(Statement, CallsNoLevelPassedOfWhichACaseDidNotRun) {
    RunReport report = whole_report();
    report.suite_cases[0] = 2;
    EXPECT_THAT(to_statement(report, ""),
                HasSubstr("must:          incomplete (1 of 2 cases ran: 1 passed)\n"));
    report.results.clear();
    EXPECT_THAT(to_statement(report, ""), HasSubstr("must:          not tested (2 cases)\n"));
    EXPECT_THAT(to_statement(report, ""), HasSubstr(" --producer as-published"));
}

TEST(Statement, HasNoLineOfATestee) {
    RunReport report = whole_report();
    report.consumer.name = "a\nmust:          passed";
    report.results[1].message = std::string(100000, 'x') + "\nmust: passed";
    const std::string text = to_statement(report, "");
    EXPECT_THAT(text, HasSubstr("consumer:      a\\x0amust:          passed\n"));
    EXPECT_LT(text.size(), 3000u);
}

TEST(Sha256, GivesTheDigestsOfTheStandard) {
    EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    EXPECT_EQ(sha256_hex("abc"),
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
              "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    EXPECT_EQ(sha256_hex(std::string(1000000, 'a')),
              "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
    EXPECT_EQ(sha256_base64("abc"), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
}

}  // namespace
}  // namespace kmes::conformance
