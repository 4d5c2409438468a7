// SPDX-License-Identifier: MIT
//
// The report as JSON.
#include "conformance/report/json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "conformance/model/published_clause.h"
#include "conformance/report/result.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

using Json = nlohmann::ordered_json;

double milliseconds_kept(double seconds) {
    return std::round(seconds * 1000) / 1000;
}

Json words_to_json(const std::vector<std::string>& words) {
    Json list = Json::array();
    for (const std::string& word : words) list.push_back(valid_utf8(word));
    return list;
}

// An optional member is absent if it is empty.
void add_text(Json& value, const char* name, std::string_view text) {
    if (!text.empty()) value[name] = valid_utf8(text);
}

Json finding_to_json(const Finding& finding) {
    Json value;
    value["code"] = finding_name(finding.code);
    value["clause"] = valid_utf8(finding.clause);
    value["message"] = valid_utf8(finding.message);
    if (finding.cpu) value["cpu"] = *finding.cpu;
    if (finding.sequence != 0) value["sequence"] = finding.sequence;
    if (finding.line != 0) value["line"] = finding.line;
    return value;
}

Json row_to_json(const TraceRow& row) {
    Json value;
    if (row.hidden != 0) {
        value["hidden"] = row.hidden;
        return value;
    }
    value["step"] = row.number;
    value["kind"] = step_kind_name(row.kind);
    value["thread"] = row.thread;
    if (row.cpu) value["cpu"] = *row.cpu;
    value["text"] = valid_utf8(row.text);
    add_text(value, "clause", row.clause);
    add_text(value, "place", row.place);
    add_text(value, "change", row.change);
    if (!row.wakes.empty()) value["wakes"] = row.wakes;
    if (row.decisive) value["decisive"] = true;
    add_text(value, "why", row.why);
    return value;
}

Json trace_to_json(const Trace& trace) {
    Json value;
    value["threads"] = trace.threads;
    if (trace.has_several_cpus) value["several_cpus"] = true;
    add_text(value, "left_out", trace.left_out);
    value["rows"] = Json::array();
    for (const TraceRow& row : trace.rows) value["rows"].push_back(row_to_json(row));
    return value;
}

// One entry for each line; a final newline starts no further entry.
Json lines_to_json(std::string_view text) {
    Json lines = Json::array();
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        lines.push_back(valid_utf8(text.substr(0, end)));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return lines;
}

void add_evidence(Json& value, const CaseResult& result) {
    if (!result.findings.empty()) {
        value["findings"] = Json::array();
        for (const Finding& finding : result.findings)
            value["findings"].push_back(finding_to_json(finding));
    }
    if (!result.history.empty()) value["history"] = lines_to_json(result.history);
    add_text(value, "standard_error", result.standard_error);
    add_text(value, "standard_error_line", result.last_words);
    if (!result.trace.rows.empty()) value["trace"] = trace_to_json(result.trace);
}

Json case_to_json(const CaseResult& result, std::string_view layout) {
    Json value;
    value["id"] = valid_utf8(result.id);
    value["level"] = level_name(result.level);
    value["verdict"] = verdict_name(result.verdict);
    value["clause"] = valid_utf8(result.clause);
    add_text(value, "published_clause", published_clause(result.clause, layout));
    value["message"] = valid_utf8(result.message);
    value["seconds"] = milliseconds_kept(result.seconds);
    value["replay"] = valid_utf8(result.replay);
    add_text(value, "title", result.title);
    add_text(value, "done", result.what_is_done);
    add_text(value, "expectation", result.what_is_right);
    if (result.explored) {
        value["explored"]["schedules"] = result.explored->schedules;
        value["explored"]["seconds"] = milliseconds_kept(result.explored->seconds);
        value["explored"]["whole"] = result.explored->whole;
    }
    add_text(value, "cause", result.cause);
    if (result.is_clause_assumed) value["clause_assumed"] = true;
    if (result.steps != 0) value["steps"] = result.steps;
    add_text(value, "saved", result.saved);
    if (result.is_known) value["known"] = true;
    add_evidence(value, result);
    return value;
}

Json differences_to_json(const std::vector<ListDifference>& differences) {
    Json list = Json::array();
    for (const ListDifference& difference : differences) {
        Json value;
        add_text(value, "case", difference.case_id);
        value["message"] = cut(valid_utf8(difference.message), kTextBytesInAReport);
        list.push_back(value);
    }
    return list;
}

Json suite_to_json(const RunReport& report) {
    Json value;
    value["name"] = "kmes-conformance";
    value["release"] = valid_utf8(report.suite.release);
    add_text(value, "commit", report.suite.commit);
    value["ring_format"] = report.suite.ring_format;
    value["contract"] = report.suite.contract;
    for (const Level level : kLevels)
        value["cases"][std::string(level_name(level))] =
            report.suite_cases.at(static_cast<std::size_t>(level));
    return value;
}

Json machine_to_json(const Machine& machine) {
    Json value;
    value["kernel"] = valid_utf8(machine.kernel);
    value["processor"] = valid_utf8(machine.processor);
    value["processors"] = machine.processors;
    return value;
}

Json run_to_json(const RunReport& report) {
    const RunOptions& options = report.options;
    Json value;
    value["began"] = utc_text(report.began);
    value["seconds"] = milliseconds_kept(report.seconds);
    value["seed"] = report.seed;
    value["cpus"] = report.cpus;
    value["capacity_bytes"] = report.capacity_bytes;
    value["timeout_scale"] = options.timeout_scale;
    value["level"] = valid_utf8(options.level);
    value["explore"] = valid_utf8(options.explore);
    value["shared"] = options.shared;
    if (options.as_published) value["producer"] = kAsPublished;
    value["soak_seconds"] = options.soak_seconds;
    value["filters"] = words_to_json(options.filters);
    value["without"] = words_to_json(options.without);
    add_text(value, "stream", options.stream);
    add_text(value, "device", options.device);
    add_text(value, "layout", options.layout);
    add_text(value, "stepper", report.stepper);
    return value;
}

}  // namespace

std::string to_json(const RunReport& report) {
    const Summary summary = summarise(report.results);
    Json value;
    value["schema"] = kReportSchema;
    value["suite"] = suite_to_json(report);
    value["consumer"]["name"] = valid_utf8(report.consumer.name);
    add_text(value["consumer"], "version", report.consumer.version);
    value["testee"] = words_to_json(report.testee);
    value["machine"] = machine_to_json(report.machine);
    value["run"] = run_to_json(report);
    if (report.shard) {
        value["shard"]["index"] = report.shard->index;
        value["shard"]["total"] = report.shard->total;
        value["shard"]["cases"] = words_to_json(report.shard->cases);
    }
    value["cases"] = Json::array();
    for (const CaseResult& result : report.results)
        value["cases"].push_back(case_to_json(result, report.options.layout));
    // Only a run that failed or ended early has these.
    if (!report.preflight.empty()) value["preflight"] = valid_utf8(report.preflight);
    if (report.interrupted) value["interrupted"] = true;
    if (!report.differences.empty()) value["differences"] = differences_to_json(report.differences);
    if (!report.part_differences.empty())
        value["part_differences"] = differences_to_json(report.part_differences);
    if (!report.not_run.empty()) value["not_run"] = words_to_json(report.not_run);
    value["summary"]["pass"] = summary.pass;
    value["summary"]["fail"] = summary.fail;
    value["summary"]["known"] = summary.known;
    value["summary"]["inconclusive"] = summary.inconclusive;
    value["summary"]["unsupported"] = summary.unsupported;
    value["summary"]["suite_error"] = summary.suite_error;
    return value.dump(2) + "\n";
}

}  // namespace kmes::conformance
