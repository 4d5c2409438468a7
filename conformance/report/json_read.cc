// SPDX-License-Identifier: MIT
//
// See json_read.h.
#include "conformance/report/json_read.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "conformance/report/json.h"
#include "conformance/report/json_reader.h"
#include "conformance/report/result.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

constexpr std::size_t kTextBytes = std::size_t{1} << 20;
constexpr std::size_t kCases = 100'000;
constexpr std::size_t kItems = 1'000'000;  // more than the words of any command line
constexpr std::uint64_t kAny32 = UINT32_MAX;
constexpr std::uint64_t kAny64 = UINT64_MAX;
constexpr double kMostSeconds = 1e12;

std::string text_of(const JsonReader& json) {
    return json.bytes(kTextBytes);
}

std::string text_in(const JsonReader& json, const char* name) {
    if (!json.has(name)) return "";
    const JsonReader member = json.at(name);
    return text_of(member);
}

std::vector<std::string> words_of(const JsonReader& json) {
    std::vector<std::string> words;
    const std::size_t count = json.count(kItems);
    for (std::size_t i = 0; i < count; ++i) {
        const JsonReader item = json.item(i);
        words.push_back(text_of(item));
    }
    return words;
}

// Returns 0 if there is no such member.
std::uint64_t number_in(const JsonReader& json, const char* name, std::uint64_t most) {
    if (!json.has(name)) return 0;
    const JsonReader member = json.at(name);
    return member.number(0, most);
}

double seconds_in(const JsonReader& json, const char* name) {
    const JsonReader member = json.at(name);
    return member.real(0, kMostSeconds);
}

bool truth_in(const JsonReader& json, const char* name) {
    if (!json.has(name)) return false;
    const JsonReader member = json.at(name);
    return member.truth();
}

Level level_of(const JsonReader& json) {
    const auto level = level_from_name(text_of(json));
    if (!level) json.fail("must, should, erratum or robust");
    return *level;
}

Verdict verdict_of(const JsonReader& json) {
    const auto verdict = verdict_from_name(text_of(json));
    if (!verdict) json.fail("pass, fail, inconclusive, unsupported or suite_error");
    return *verdict;
}

FindingCode code_of(const JsonReader& json) {
    const auto names = finding_names();
    const auto found = std::ranges::find(names, text_of(json));
    if (found == names.end()) json.fail("the name of a finding, such as torn-event");
    return static_cast<FindingCode>(found - names.begin());
}

std::int64_t time_of(const JsonReader& json) {
    std::tm parts{};
    const std::string text = text_of(json);
    const char* end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
    if (end == nullptr || *end != '\0' || utc_text(::timegm(&parts)) != text)
        json.fail("a time like 2026-11-26T18:46:00Z");
    return ::timegm(&parts);
}

Finding finding_of(const JsonReader& json) {
    json.expect_names({"code", "clause", "message", "cpu", "sequence", "line"});
    Finding finding;
    finding.code = code_of(json.at("code"));
    finding.clause = text_in(json, "clause");
    finding.message = text_in(json, "message");
    if (json.has("cpu")) finding.cpu = static_cast<std::uint32_t>(number_in(json, "cpu", kAny32));
    finding.sequence = number_in(json, "sequence", kAny64);
    finding.line = number_in(json, "line", kAny64);
    return finding;
}

std::vector<std::int32_t> threads_of(const JsonReader& json) {
    std::vector<std::int32_t> threads;
    const std::size_t count = json.count(kItems);
    for (std::size_t i = 0; i < count; ++i) {
        const JsonReader item = json.item(i);
        threads.push_back(static_cast<std::int32_t>(item.number(0, INT32_MAX)));
    }
    return threads;
}

TraceRow row_of(const JsonReader& json) {
    TraceRow row;
    if (json.has("hidden")) {
        json.expect_names({"hidden"});
        const JsonReader hidden = json.at("hidden");
        row.hidden = hidden.number(1, kAny64);
        return row;
    }
    json.expect_names({"step", "kind", "thread", "cpu", "text", "clause", "place", "change",
                       "wakes", "decisive", "why"});
    row.number = number_in(json, "step", kAny64);
    const JsonReader kind = json.at("kind");
    row.kind = static_cast<StepKind>(kind.word(kStepKindNames));
    row.thread = static_cast<std::int32_t>(number_in(json, "thread", INT32_MAX));
    if (json.has("cpu")) row.cpu = static_cast<std::uint32_t>(number_in(json, "cpu", kAny32));
    row.text = text_in(json, "text");
    row.clause = text_in(json, "clause");
    row.place = text_in(json, "place");
    row.change = text_in(json, "change");
    if (json.has("wakes")) row.wakes = threads_of(json.at("wakes"));
    row.decisive = truth_in(json, "decisive");
    row.why = text_in(json, "why");
    return row;
}

Trace trace_of(const JsonReader& json) {
    json.expect_names({"threads", "several_cpus", "left_out", "rows"});
    Trace trace;
    trace.threads = threads_of(json.at("threads"));
    trace.has_several_cpus = truth_in(json, "several_cpus");
    trace.left_out = text_in(json, "left_out");
    const JsonReader rows = json.at("rows");
    const std::size_t count = rows.count(kItems);
    for (std::size_t i = 0; i < count; ++i) trace.rows.push_back(row_of(rows.item(i)));
    return trace;
}

void read_evidence(const JsonReader& json, CaseResult& result) {
    if (json.has("findings")) {
        const JsonReader findings = json.at("findings");
        const std::size_t count = findings.count(kItems);
        for (std::size_t i = 0; i < count; ++i)
            result.findings.push_back(finding_of(findings.item(i)));
    }
    if (json.has("history")) {
        for (const std::string& line : words_of(json.at("history"))) result.history += line + "\n";
    }
    result.standard_error = text_in(json, "standard_error");
    result.last_words = text_in(json, "standard_error_line");
    if (json.has("trace")) result.trace = trace_of(json.at("trace"));
}

CaseResult case_of(const JsonReader& json) {
    // published_clause follows from the clause and the form, and is not kept.
    json.expect_names({"id",
                       "level",
                       "verdict",
                       "clause",
                       "published_clause",
                       "message",
                       "seconds",
                       "replay",
                       "title",
                       "done",
                       "expectation",
                       "explored",
                       "cause",
                       "clause_assumed",
                       "saved",
                       "known",
                       "findings",
                       "history",
                       "standard_error",
                       "trace",
                       "steps",
                       "standard_error_line"});
    CaseResult result;
    result.id = text_of(json.at("id"));
    result.level = level_of(json.at("level"));
    result.verdict = verdict_of(json.at("verdict"));
    result.clause = text_of(json.at("clause"));
    text_in(json, "published_clause");
    result.message = text_of(json.at("message"));
    result.seconds = seconds_in(json, "seconds");
    result.replay = text_of(json.at("replay"));
    result.title = text_in(json, "title");
    result.what_is_done = text_in(json, "done");
    result.what_is_right = text_in(json, "expectation");
    if (json.has("explored")) {
        const JsonReader explored = json.at("explored");
        explored.expect_names({"schedules", "seconds", "whole"});
        result.explored = Explored{number_in(explored, "schedules", kAny64),
                                   seconds_in(explored, "seconds"), truth_in(explored, "whole")};
    }
    result.cause = text_in(json, "cause");
    result.is_clause_assumed = truth_in(json, "clause_assumed");
    result.steps = number_in(json, "steps", kAny64);
    result.saved = text_in(json, "saved");
    result.is_known = truth_in(json, "known");
    if (result.is_known && result.verdict != Verdict::fail)
        json.at("known").fail("no such member, because only a failure can be known");
    read_evidence(json, result);
    if (result.verdict == Verdict::fail)
        result.found_clause = result.findings.empty() ? result.clause : result.findings[0].clause;
    return result;
}

void read_suite(const JsonReader& json, RunReport& report) {
    json.expect_names({"name", "release", "commit", "ring_format", "contract", "cases"});
    constexpr std::string_view kName[] = {"kmes-conformance"};
    const JsonReader name = json.at("name");
    name.word(kName);
    report.suite.release = text_in(json, "release");
    report.suite.commit = text_in(json, "commit");
    report.suite.ring_format = static_cast<std::uint32_t>(number_in(json, "ring_format", kAny32));
    report.suite.contract = static_cast<std::uint32_t>(number_in(json, "contract", kAny32));
    const JsonReader cases = json.at("cases");
    cases.expect_names({"must", "should", "erratum", "robust"});
    for (const Level level : kLevels)
        report.suite_cases.at(static_cast<std::size_t>(level)) =
            number_in(cases, std::string(level_name(level)).c_str(), kAny32);
}

void read_run(const JsonReader& json, RunReport& report) {
    json.expect_names({"began", "seconds", "seed", "cpus", "capacity_bytes", "timeout_scale",
                       "level", "explore", "shared", "producer", "soak_seconds", "filters",
                       "without", "stream", "device", "layout", "stepper"});
    report.began = time_of(json.at("began"));
    report.seconds = seconds_in(json, "seconds");
    report.seed = number_in(json, "seed", kAny64);
    report.cpus = static_cast<std::uint32_t>(number_in(json, "cpus", kAny32));
    report.capacity_bytes = number_in(json, "capacity_bytes", kAny64);
    report.stepper = text_in(json, "stepper");
    RunOptions& options = report.options;
    options.timeout_scale = seconds_in(json, "timeout_scale");
    options.level = level_name(level_of(json.at("level")));
    options.explore = text_in(json, "explore");
    options.shared = truth_in(json, "shared");
    if (json.has("producer")) {
        constexpr std::string_view kProducer[] = {kAsPublished};
        const JsonReader producer = json.at("producer");
        producer.word(kProducer);
        options.as_published = true;
    }
    options.soak_seconds = seconds_in(json, "soak_seconds");
    options.filters = words_of(json.at("filters"));
    options.without = words_of(json.at("without"));
    options.stream = text_in(json, "stream");
    options.device = text_in(json, "device");
    options.layout = text_in(json, "layout");
}

void read_summary(const JsonReader& json, const RunReport& report) {
    json.expect_names({"pass", "fail", "known", "inconclusive", "unsupported", "suite_error"});
    const Summary sums = summarise(report.results);
    for (const auto& [name, sum] :
         {std::pair("pass", sums.pass), std::pair("fail", sums.fail),
          std::pair("known", sums.known), std::pair("inconclusive", sums.inconclusive),
          std::pair("unsupported", sums.unsupported), std::pair("suite_error", sums.suite_error)}) {
        const JsonReader member = json.at(name);
        if (member.number(0, kAny64) != sum)
            member.fail(fmt::format("{}, the number of such cases in the file", sum));
    }
}

void read_machine(const JsonReader& json, Machine& machine) {
    json.expect_names({"kernel", "processor", "processors"});
    machine.kernel = text_in(json, "kernel");
    machine.processor = text_in(json, "processor");
    machine.processors = static_cast<std::uint32_t>(number_in(json, "processors", kAny32));
}

void read_shard(const JsonReader& json, RunReport& report) {
    json.expect_names({"index", "total", "cases"});
    Shard shard;
    shard.total = static_cast<std::uint32_t>(number_in(json, "total", kMostShards));
    const JsonReader index = json.at("index");
    if (shard.total == 0) json.at("total").fail("at least 1");
    shard.index = static_cast<std::uint32_t>(index.number(0, shard.total - 1));
    shard.cases = words_of(json.at("cases"));
    report.shard = shard;
}
// `merge` goes by the cases of the shards.
void check_cases_of_shard(const JsonReader& json, const RunReport& report) {
    if (!report.shard) return;
    const JsonReader shard = json.at("shard");
    const JsonReader listed = shard.at("cases");
    std::set<std::string_view> ids;
    for (std::size_t i = 0; i < report.shard->cases.size(); ++i) {
        if (!ids.insert(report.shard->cases[i]).second)
            listed.item(i).fail("an id that no other item has");
    }
    constexpr const char* kRight = "one of the cases of \"shard\"";
    for (std::size_t i = 0; i < report.results.size(); ++i) {
        if (ids.contains(report.results[i].id)) continue;
        const JsonReader cases = json.at("cases");
        const JsonReader one = cases.item(i);
        one.at("id").fail(kRight);
    }
    for (std::size_t i = 0; i < report.not_run.size(); ++i) {
        if (ids.contains(report.not_run[i])) continue;
        const JsonReader not_run = json.at("not_run");
        not_run.item(i).fail(kRight);
    }
}

std::vector<ListDifference> differences_of(const JsonReader& json) {
    std::vector<ListDifference> differences;
    const std::size_t count = json.count(kItems);
    for (std::size_t i = 0; i < count; ++i) {
        const JsonReader item = json.item(i);
        item.expect_names({"case", "message"});
        differences.push_back({text_in(item, "case"), text_of(item.at("message"))});
    }
    return differences;
}

RunReport read_report(const JsonReader& json) {
    // Check the version first: another version may have other members.
    const JsonReader version = json.at("schema");
    if (version.number(0, kAny64) != kReportSchema)
        version.fail(fmt::format("{}, the only schema that this suite reads", kReportSchema));
    json.expect_names({"schema", "suite", "consumer", "testee", "machine", "run", "shard", "cases",
                       "preflight", "interrupted", "differences", "part_differences", "not_run",
                       "summary"});
    RunReport report;
    read_suite(json.at("suite"), report);
    const JsonReader consumer = json.at("consumer");
    consumer.expect_names({"name", "version"});
    report.consumer.name = text_of(consumer.at("name"));
    report.consumer.version = text_in(consumer, "version");
    report.testee = words_of(json.at("testee"));
    read_machine(json.at("machine"), report.machine);
    read_run(json.at("run"), report);
    if (json.has("shard")) read_shard(json.at("shard"), report);
    const JsonReader cases = json.at("cases");
    const std::size_t count = cases.count(kCases);
    std::set<std::string> ids;
    for (std::size_t i = 0; i < count; ++i) {
        const JsonReader item = cases.item(i);
        report.results.push_back(case_of(item));
        if (!ids.insert(report.results.back().id).second)
            item.at("id").fail("an id that no other case has");
    }
    report.preflight = text_in(json, "preflight");
    // No case ran, and the file does not give the exact reason.
    if (!report.preflight.empty()) report.preflight_status = kExitSuite;
    report.interrupted = truth_in(json, "interrupted");
    if (json.has("differences")) report.differences = differences_of(json.at("differences"));
    if (json.has("part_differences"))
        report.part_differences = differences_of(json.at("part_differences"));
    if (json.has("not_run")) report.not_run = words_of(json.at("not_run"));
    check_cases_of_shard(json, report);
    read_summary(json.at("summary"), report);
    return report;
}

}  // namespace

ReadReport report_from_json(std::string_view text) {
    ReadReport read;
    if (text.size() > kMaximumReportFileBytes) {
        read.error = fmt::format("the file has {} bytes; expected at most {}", text.size(),
                                 kMaximumReportFileBytes);
        return read;
    }
    try {
        const nlohmann::json json = parse_json(text, "--report json", kMaximumReportValues);
        const JsonReader root(json);
        read.report = read_report(root);
    } catch (const FormatError& error) {
        read.error = error.what();
    }
    return read;
}

}  // namespace kmes::conformance
