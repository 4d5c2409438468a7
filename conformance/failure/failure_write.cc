// SPDX-License-Identifier: MIT
//
// Writes a failure file as JSON, each list item on its own line, so that two files can be compared
// by lines. See failure_file.h and docs/failure-files.md.
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "conformance/failure/failure_file.h"
#include "conformance/failure/file_limits.h"
#include "conformance/failure/schedule_text.h"
#include "conformance/report/json_extent.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

using Json = nlohmann::ordered_json;

// Any bytes: a string if they are valid UTF-8, else {"hex": "..."}.
Json bytes_to_json(std::string_view bytes) {
    if (valid_utf8(bytes) == bytes) return std::string(bytes);
    static constexpr std::string_view kDigits = "0123456789abcdef";
    std::string digits;
    digits.reserve(2 * bytes.size());
    for (const char byte : bytes) {
        const auto value = static_cast<unsigned char>(byte);
        digits.push_back(kDigits[value / 16]);
        digits.push_back(kDigits[value % 16]);
    }
    Json hex;
    hex["hex"] = digits;
    return hex;
}

// Cuts a text that is longer than the reader accepts.
Json text_to_json(std::string_view text) {
    return bytes_to_json(text.substr(0, kMaximumTextFieldBytes));
}

// Writes {"name": value, ...}, with each member and each list item on a line of its own.
class Writer {
  public:
    void member(std::string_view name, const Json& value) {
        begin(name);
        out_ += value.dump();
    }

    void list(std::string_view name, std::size_t count,
              const std::function<Json(std::size_t)>& item) {
        begin(name);
        out_ += "[";
        for (std::size_t i = 0; i < count; ++i) {
            out_ += i == 0 ? "\n" : ",\n";
            out_ += std::string(2 * depth_ + 2, ' ') + item(i).dump();
        }
        if (count > 0) out_ += "\n" + std::string(2 * depth_, ' ');
        out_ += "]";
    }

    void open(std::string_view name) {
        begin(name);
        out_ += "{";
        ++depth_;
        first_ = true;
    }

    void close() {
        --depth_;
        out_ += "\n" + std::string(2 * depth_, ' ') + "}";
        first_ = false;
    }

    std::string take() { return "{" + std::move(out_) + "\n}\n"; }

  private:
    void begin(std::string_view name) {
        out_ += first_ ? "\n" : ",\n";
        first_ = false;
        out_ += std::string(2 * depth_, ' ') + Json(name).dump() + ": ";
    }

    std::string out_;
    std::size_t depth_ = 1;
    bool first_ = true;
};

// Writes a text as its lines, including the one after the last newline.
void write_lines(Writer& out, std::string_view name, std::string_view text) {
    std::vector<std::string_view> lines;
    for (std::size_t begin = 0; begin <= text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        lines.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    if (text.empty()) lines.clear();
    out.list(name, lines.size(), [&](std::size_t i) { return bytes_to_json(lines[i]); });
}

Json point_to_json(const AccessPoint& point) {
    Json value;
    value["phase"] = point.phase;
    value["cpu"] = point.cpu;
    value["offset_bytes"] = point.offset_bytes;
    value["size_bytes"] = point.size_bytes;
    value["is_write"] = point.is_write;
    value["occurrence"] = point.occurrence;
    if (point.split_bytes != 0) value["split_bytes"] = point.split_bytes;
    if (point.kind != PointKind::access)
        value["kind"] = kPointKindNames.at(static_cast<std::size_t>(point.kind));
    return value;
}

// Leaves Written::whole out, as in files from before the other states existed.
void add_written(Json& value, Written written) {
    if (written == Written::whole) return;
    value["written"] = kWrittenNames[static_cast<std::size_t>(written)];
}

void write_schedule(Writer& out, std::string_view name, const std::optional<Schedule>& schedule) {
    if (!schedule) return;
    out.open(name);
    out.member("scenario", text_to_json(schedule->scenario));
    out.member("seed", schedule->seed);
    if (schedule->drawn) out.member("drawn", true);
    const std::size_t kept = std::min(schedule->moves.size(), kMaximumMoves);
    // A drawn schedule is played from its seed.
    const std::uint64_t cut = schedule->drawn ? 0 : schedule->moves.size() - kept;
    if (schedule->left_out + cut != 0) out.member("left_out", schedule->left_out + cut);
    out.list("moves", kept, [&](std::size_t i) {
        const Move& move = schedule->moves[i];
        Json value = point_to_json(move.point);
        value["action"] = action_name(move.action);
        if (move.parameter != 0) value["parameter"] = move.parameter;
        if (move.further != 0) value["further"] = move.further;
        add_written(value, move.written);
        return value;
    });
    out.close();
}

void write_run(Writer& out, const FailureFile& file) {
    const StageSettings& settings = file.settings;
    out.open("run");
    Json testee = Json::array();
    for (const std::string& word : settings.testee) testee.push_back(text_to_json(word));
    out.member("testee", testee);
    out.member("cpus", settings.cpus);
    out.member("capacity_bytes", settings.capacity_bytes);
    out.member("seed", settings.seed);
    out.member("timeout_scale", settings.timeout_scale);
    Json explore;
    explore["on"] = settings.explore.on;
    explore["seconds"] = settings.explore.seconds;
    explore["deep"] = settings.explore.deep;
    out.member("explore", explore);
    out.member("shared", settings.shared);
    out.member("soak_seconds", settings.soak_seconds);
    if (!settings.stream.empty()) out.member("stream", text_to_json(settings.stream));
    if (!settings.device.empty()) out.member("device", text_to_json(settings.device));
    if (!settings.layout.empty()) out.member("layout", text_to_json(settings.layout));
    if (settings.stepper != Stepper::automatic)
        out.member("stepping", stepper_name(settings.stepper));
    out.member("stepper", text_to_json(file.stepper));
    out.close();
}

Json finding_to_json(const Finding& finding, bool by_driver) {
    Json value;
    value["by"] = by_driver ? "driver" : "oracle";
    value["code"] = finding_name(finding.code);
    value["clause"] = text_to_json(finding.clause);
    value["message"] = text_to_json(finding.message);
    if (finding.cpu) value["cpu"] = *finding.cpu;
    if (finding.sequence != 0) value["sequence"] = finding.sequence;
    if (finding.line != 0) value["line"] = finding.line;
    return value;
}

void write_findings(Writer& out, const RunRecord& record) {
    std::vector<Finding> driver = record.driver_findings;
    out.list("findings", std::min(record.findings.size(), kMaximumFindings), [&](std::size_t i) {
        const Finding& finding = record.findings[i];
        const auto same = std::find_if(driver.begin(), driver.end(), [&](const Finding& other) {
            return same_finding(other, finding);
        });
        const bool by_driver = same != driver.end();
        if (by_driver) driver.erase(same);
        return finding_to_json(finding, by_driver);
    });
}

Json logged_to_json(const HistoryLog& log, const LoggedBytes& logged) {
    if (!logged.generated) return bytes_to_json(log.text(logged));
    Json value;
    value["seed"] = logged.where;
    value["length"] = logged.length;
    return value;
}

void add_event(Json& value, const HistoryLog& log, const LoggedOperation& operation) {
    value["cpu"] = operation.cpu;
    if (operation.style == EmitStyle::call) value["style"] = "call";
    value["type"] = logged_to_json(log, operation.type);
    if (operation.origin != 0) value["origin"] = operation.origin;
    value["timestamp"] = operation.timestamp;
    if (operation.extra_header.length != 0)
        value["extra_header"] = logged_to_json(log, operation.extra_header);
    value["payload"] = logged_to_json(log, operation.payload);
}

void add_swap(Json& value, const LoggedOperation& operation) {
    value["cpu"] = operation.cpu;
    value["capacity_bytes"] = operation.swap.capacity_bytes;
    value["positions"] = position_rule_name(operation.swap.rule);
    if (operation.swap.rule != PositionRule::keep) value["position"] = operation.swap.position;
}

Json operation_to_json(const HistoryLog& log, std::size_t index) {
    const LoggedOperation& operation = log.operations[index];
    const std::uint64_t before = index == 0 ? 0 : log.operations[index - 1].report_bytes;
    Json value;
    value["do"] = operation_name(operation.kind);
    switch (operation.kind) {
        case OperationKind::emit:
        case OperationKind::batch_add:
            add_event(value, log, operation);
            break;
        case OperationKind::swap:
        case OperationKind::hand_over:
            add_swap(value, operation);
            break;
        case OperationKind::drop:
        case OperationKind::batch_end:
        case OperationKind::tolerate:
            value["cpu"] = operation.cpu;
            break;
        case OperationKind::reserve:
            value["bytes"] = operation.room_bytes;
            [[fallthrough]];
        case OperationKind::batch_begin:
            value["cpu"] = operation.cpu;
            add_written(value, operation.written);
            if (operation.written_event != 0) value["written_event"] = operation.written_event;
            break;
        case OperationKind::outrun:
            value["cpu"] = operation.cpu;
            value["laps"] = operation.laps;
            if (operation.events != 0) value["events"] = operation.events;
            break;
        case OperationKind::set_fault:
            value["buffer"] = operation.buffer;
            value["fault"] = fault_name(operation.fault);
            value["detail"] = logged_to_json(log, operation.detail);
            break;
        case OperationKind::checkpoint_idle:
            value["cpu"] = operation.cpu;
            value["buffer"] = operation.buffer;
            value["delivered_bytes"] = operation.checkpoint_bytes;
            break;
        case OperationKind::nudge:
        case OperationKind::spurious_wake:
        case OperationKind::note_attached:
        case OperationKind::note_draining:
            value["buffer"] = operation.buffer;
            break;
    }
    if (operation.report_bytes != before) value["report_bytes"] = operation.report_bytes;
    return value;
}

void write_history(Writer& out, const HistoryLog& log, bool complete) {
    const HistorySettings& settings = log.settings;
    out.open("history");
    out.member("complete", complete);
    out.member("cpus", settings.cpus);
    out.member("capacity_bytes", settings.capacity_bytes);
    out.member("start_positions", settings.start_positions);
    out.member("first_sequence", settings.first_sequence);
    out.member("first_generation", settings.first_generation);
    out.member("first_futex_counter", settings.first_futex_counter);
    out.member("maximum_call_event_bytes", settings.maximum_call_event_bytes);
    if (settings.boot_capacity_bytes)
        out.member("boot_capacity_bytes", *settings.boot_capacity_bytes);
    out.member("kept_payload_bytes", log.kept_payload_bytes);
    out.member("report_bytes", log.report_bytes);
    out.list("operations", complete ? log.operations.size() : 0,
             [&](std::size_t i) { return operation_to_json(log, i); });
    out.close();
}

// Returns the beginning of a text that the reader accepts.
std::string_view kept_of(std::string_view text, std::size_t bytes_at_most,
                         std::size_t lines_at_most) {
    text = text.substr(0, bytes_at_most);
    std::size_t end = 0;
    for (std::size_t line = 0; line < lines_at_most; ++line) {
        end = text.find('\n', end);
        if (end == std::string_view::npos) return text;
        ++end;
    }
    // Without the last newline, after which one more line begins.
    return text.substr(0, end - 1);
}

void write_report(Writer& out, const RunRecord& record, std::size_t bytes_at_most) {
    const std::string_view kept = kept_of(record.report, bytes_at_most, kMaximumReportLines);
    out.open("report");
    out.member("left_out_bytes", record.report_left_out + (record.report.size() - kept.size()));
    write_lines(out, "lines", kept);
    out.close();
}

Json state_to_json(const BufferState& state) {
    Json value;
    value["buffer"] = state.buffer;
    value["write_pos"] = state.write_pos;
    value["tail_pos"] = state.tail_pos;
    value["generation"] = state.generation;
    value["futex_counter"] = state.futex_counter;
    value["need_wake"] = state.need_wake;
    value["retired"] = state.retired;
    return value;
}

Json step_to_json(const TimelineStep& step) {
    Json value;
    value["kind"] = step_kind_name(step.kind);
    if (step.thread != 0) value["thread"] = step.thread;
    if (step.cpu) value["cpu"] = *step.cpu;
    value["text"] = text_to_json(step.text);
    if (!step.clause.empty()) value["clause"] = text_to_json(step.clause);
    if (!step.instruction.empty()) value["instruction"] = text_to_json(step.instruction);
    if (!step.source.empty()) value["source"] = text_to_json(step.source);
    if (step.sequence != 0) value["sequence"] = step.sequence;
    if (step.state) value["state"] = state_to_json(*step.state);
    if (step.decisive) value["decisive"] = true;
    if (!step.why.empty()) value["why"] = text_to_json(step.why);
    return value;
}

void write_timeline(Writer& out, const Timeline& timeline) {
    out.open("timeline");
    out.member("left_out", timeline.left_out());
    out.list("steps", std::min(timeline.steps().size(), kMaximumSteps),
             [&](std::size_t i) { return step_to_json(timeline.steps()[i]); });
    out.close();
}

// The history alone takes more bytes than this.
std::uint64_t least_bytes(const HistoryLog& log) {
    std::uint64_t bytes = 0;
    for (const LoggedOperation& operation : log.operations) {
        bytes += operation.type.length + operation.extra_header.length + operation.detail.length;
        if (!operation.payload.generated) bytes += operation.payload.length;
    }
    return bytes;
}

std::string write_file(const FailureFile& file, bool with_history, std::size_t report_bytes) {
    const RunRecord& record = file.record;
    Writer out;
    out.member("kmes_failure", kFailureFormat);
    out.member("suite", text_to_json(file.suite));
    out.member("case", text_to_json(file.case_id));
    out.member("level", level_name(file.level));
    out.member("clause", text_to_json(file.clause));
    out.member("message", text_to_json(file.message));
    write_run(out, file);
    write_schedule(out, "schedule", record.schedule);
    write_schedule(out, "nearest_passing", file.nearest_passing);
    if (!record.points.empty()) {
        out.list("points", std::min(record.points.size(), kMaximumPoints),
                 [&](std::size_t i) { return point_to_json(record.points[i]); });
    }
    out.open("judge");
    out.member("exited_with_zero", record.judge_options.exited_with_zero);
    out.member("cut_short", record.judge_options.cut_short);
    out.member("maximum_findings_per_code", record.judge_options.maximum_findings_per_code);
    out.close();
    write_findings(out, record);
    write_history(out, record.history, with_history);
    write_report(out, record, report_bytes);
    write_lines(out, "standard_error",
                std::string_view(record.standard_error).substr(0, kMaximumStandardErrorBytes));
    write_timeline(out, record.timeline);
    return out.take();
}

}  // namespace

std::string to_json(const FailureFile& file) {
    const HistoryLog& log = file.record.history;
    if (least_bytes(log) <= kMaximumFailureFileBytes) {
        std::string text = write_file(file, log.complete, kMaximumReportBytes);
        if (text.size() <= kMaximumFailureFileBytes &&
            json_extent(text).values <= kMaximumFailureFileValues)
            return text;
    }
    return write_file(file, false, kReportBytesOfALongRun);
}

}  // namespace kmes::conformance
