// SPDX-License-Identifier: MIT
//
// Reads a failure file. Every byte of it is hostile. See failure_file.h.
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "conformance/failure/failure_file.h"
#include "conformance/failure/file_limits.h"
#include "conformance/failure/schedule_text.h"
#include "conformance/model/case_id.h"
#include "conformance/model/layout.h"
#include "conformance/oracle/judge.h"
#include "conformance/report/json_reader.h"

namespace kmes::conformance {
namespace {

constexpr std::uint64_t kAny64 = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kAny32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMostPayload = kAny32;
constexpr std::uint64_t kMaximumBuffers = 10'000'000;

std::uint32_t number32(const JsonReader& json, std::uint64_t least, std::uint64_t most) {
    return static_cast<std::uint32_t>(json.number(least, most));
}

std::uint64_t number_or_zero(const JsonReader& json, const char* name, std::uint64_t most) {
    return json.has(name) ? json.at(name).number(0, most) : 0;
}

std::string text_or_empty(const JsonReader& json, const char* name) {
    return json.has(name) ? json.at(name).bytes(kMaximumTextFieldBytes) : std::string();
}

std::string read_lines(const JsonReader& json, std::size_t lines_at_most, std::size_t most) {
    std::string text;
    const std::size_t count = json.count(lines_at_most);
    for (std::size_t i = 0; i < count; ++i) {
        if (i > 0) text += '\n';
        const JsonReader line = json.item(i);
        text += line.bytes(most);
        if (text.size() > most) json.fail(fmt::format("lines of at most {} bytes together", most));
    }
    return text;
}

AccessPoint read_point(const JsonReader& json) {
    AccessPoint point;
    point.phase = number32(json.at("phase"), 0, kMaximumPhase);
    point.cpu = number32(json.at("cpu"), 0, kMaximumCpus - 1);
    point.offset_bytes = json.at("offset_bytes").number(0, kMaximumCapacityBytes);
    point.size_bytes = number32(json.at("size_bytes"), 0, kAny32);
    point.is_write = json.at("is_write").truth();
    point.occurrence = json.at("occurrence").number(0, kAny64);
    point.split_bytes = static_cast<std::uint32_t>(number_or_zero(json, "split_bytes", kAny32));
    if (!json.has("kind")) return point;
    const JsonReader moment = json.at("kind");
    point.kind = static_cast<PointKind>(moment.word(kPointKindNames));
    return point;
}

Written read_written(const JsonReader& json) {
    if (!json.has("written")) return Written::whole;
    return static_cast<Written>(json.at("written").word(kWrittenNames));
}

Schedule read_schedule(const JsonReader& json) {
    json.expect_names({"scenario", "seed", "moves", "drawn", "left_out"});
    Schedule schedule;
    schedule.scenario = json.at("scenario").bytes(kMaximumTextFieldBytes);
    schedule.seed = json.at("seed").number(0, kAny64);
    schedule.drawn = json.has("drawn") && json.at("drawn").truth();
    schedule.left_out = number_or_zero(json, "left_out", kAny32);
    const JsonReader moves = json.at("moves");
    const std::size_t count = moves.count(kMaximumMoves);
    for (std::size_t i = 0; i < count; ++i) {
        const JsonReader item = moves.item(i);
        item.expect_names({"phase", "cpu", "offset_bytes", "size_bytes", "is_write", "occurrence",
                           "split_bytes", "kind", "action", "parameter", "further", "written"});
        Move move;
        move.point = read_point(item);
        const JsonReader name = item.at("action");
        const auto action = action_from_name(name.bytes(kMaximumTextFieldBytes));
        if (!action) name.fail("one of " + action_names());
        move.action = *action;
        move.parameter = number_or_zero(item, "parameter", kAny64);
        move.further = static_cast<std::uint32_t>(number_or_zero(item, "further", kMaximumCpus));
        move.written = read_written(item);
        schedule.moves.push_back(move);
    }
    return schedule;
}

std::vector<AccessPoint> read_points(const JsonReader& json) {
    std::vector<AccessPoint> points;
    const std::size_t count = json.count(kMaximumPoints);
    for (std::size_t i = 0; i < count; ++i) {
        const JsonReader item = json.item(i);
        item.expect_names({"phase", "cpu", "offset_bytes", "size_bytes", "is_write", "occurrence",
                           "split_bytes", "kind"});
        points.push_back(read_point(item));
    }
    return points;
}

// Returns an empty string for the default form, as in the settings.
std::string read_layout(const JsonReader& json) {
    const Layout* found = find_layout(json.bytes(kMaximumTextFieldBytes));
    if (found == nullptr) json.fail(layout_names());
    return found == &all_layouts().front() ? std::string() : std::string(found->name);
}

void read_run(const JsonReader& json, FailureFile& file) {
    json.expect_names({"testee", "cpus", "capacity_bytes", "seed", "timeout_scale", "explore",
                       "shared", "soak_seconds", "stream", "device", "layout", "stepping",
                       "stepper"});
    StageSettings& settings = file.settings;
    const JsonReader testee = json.at("testee");
    const std::size_t words = testee.count(kMaximumWords);
    for (std::size_t i = 0; i < words; ++i) {
        const JsonReader word = testee.item(i);
        settings.testee.push_back(word.bytes(kMaximumTextFieldBytes));
    }
    settings.cpus = number32(json.at("cpus"), 1, kMaximumCpus);
    settings.capacity_bytes = json.at("capacity_bytes").number(1, kMaximumCapacityBytes);
    settings.seed = json.at("seed").number(0, kAny64);
    settings.timeout_scale = json.at("timeout_scale").real(0.001, 1e6);
    const JsonReader explore = json.at("explore");
    explore.expect_names({"on", "seconds", "deep"});
    settings.explore.on = explore.at("on").truth();
    settings.explore.seconds = explore.at("seconds").real(0, 1e9);
    settings.explore.deep = explore.at("deep").truth();
    settings.shared = json.at("shared").truth();
    settings.soak_seconds = json.at("soak_seconds").real(0, 1e9);
    if (json.has("stream")) settings.stream = json.at("stream").bytes(kMaximumTextFieldBytes);
    if (json.has("device")) settings.device = json.at("device").bytes(kMaximumTextFieldBytes);
    if (json.has("layout")) settings.layout = read_layout(json.at("layout"));
    if (json.has("stepping"))
        settings.stepper = static_cast<Stepper>(json.at("stepping").word(kStepperNames));
    file.stepper = json.at("stepper").bytes(kMaximumTextFieldBytes);
}

Finding read_finding(const JsonReader& json) {
    json.expect_names({"by", "code", "clause", "message", "cpu", "sequence", "line"});
    Finding finding;
    finding.code = static_cast<FindingCode>(json.at("code").word(finding_names()));
    finding.clause = json.at("clause").bytes(kMaximumTextFieldBytes);
    finding.message = json.at("message").bytes(kMaximumTextFieldBytes);
    if (json.has("cpu")) finding.cpu = number32(json.at("cpu"), 0, kAny32);
    finding.sequence = number_or_zero(json, "sequence", kAny64);
    finding.line = number_or_zero(json, "line", kAny64);
    return finding;
}

void read_findings(const JsonReader& json, RunRecord& record) {
    static constexpr std::array<std::string_view, 2> kBy = {"driver", "oracle"};
    const std::size_t count = json.count(kMaximumFindings);
    for (std::size_t i = 0; i < count; ++i) {
        const JsonReader item = json.item(i);
        record.findings.push_back(read_finding(item));
        if (item.at("by").word(kBy) == 0) record.driver_findings.push_back(record.findings.back());
    }
}

// Reads operations into a log.
class LogReader {
  public:
    explicit LogReader(HistoryLog& log) : log_(log) {}

    void read(const JsonReader& json) {
        static const std::vector<std::string_view> kinds = [] {
            std::vector<std::string_view> names;
            for (int kind = 0; kind <= static_cast<int>(OperationKind::outrun); ++kind)
                names.push_back(operation_name(static_cast<OperationKind>(kind)));
            return names;
        }();
        LoggedOperation operation;
        operation.kind = static_cast<OperationKind>(json.at("do").word(kinds));
        switch (operation.kind) {
            case OperationKind::emit:
            case OperationKind::batch_add:
                read_event(json, operation);
                break;
            case OperationKind::swap:
            case OperationKind::hand_over:
                read_swap(json, operation);
                break;
            case OperationKind::drop:
            case OperationKind::batch_end:
            case OperationKind::tolerate:
                json.expect_names({"do", "cpu", "report_bytes"});
                operation.cpu = cpu(json);
                break;
            case OperationKind::reserve:
                json.expect_names({"do", "cpu", "bytes", "written", "report_bytes"});
                operation.cpu = cpu(json);
                operation.room_bytes = json.at("bytes").number(0, kAny64);
                operation.written = read_written(json);
                break;
            case OperationKind::batch_begin:
                json.expect_names({"do", "cpu", "written", "written_event", "report_bytes"});
                operation.cpu = cpu(json);
                operation.written = read_written(json);
                operation.written_event =
                    static_cast<std::uint32_t>(number_or_zero(json, "written_event", kAny32));
                break;
            case OperationKind::outrun:
                json.expect_names({"do", "cpu", "laps", "events", "report_bytes"});
                operation.cpu = cpu(json);
                operation.laps = json.at("laps").number(0, kAny64);
                if (json.has("events")) operation.events = json.at("events").number(0, kAny64);
                break;
            default:
                read_about_buffer(json, operation);
                break;
        }
        if (json.has("report_bytes")) report_bytes_ = json.at("report_bytes").number(0, kAny64);
        operation.report_bytes = report_bytes_;
        log_.operations.push_back(operation);
    }

  private:
    std::uint32_t cpu(const JsonReader& json) const {
        return number32(json.at("cpu"), 0, log_.settings.cpus - 1);
    }

    LoggedBytes bytes(const JsonReader& json, const LoggedBytes& last = {}) {
        const LoggedBytes kept = log_.keep(json.bytes(HistoryLog::kMaximumBytes), last);
        if (log_.bytes.size() > HistoryLog::kMaximumBytes)
            json.fail(fmt::format("bytes of which all operations together have at most {}",
                                  HistoryLog::kMaximumBytes));
        return kept;
    }

    LoggedBytes payload(const JsonReader& json) {
        if (!json.has("seed")) return bytes(json);
        json.expect_names({"seed", "length"});
        return {json.at("seed").number(0, kAny64), number32(json.at("length"), 0, kMostPayload),
                true};
    }

    void read_event(const JsonReader& json, LoggedOperation& operation) {
        json.expect_names({"do", "cpu", "style", "type", "origin", "timestamp", "extra_header",
                           "payload", "report_bytes"});
        static constexpr std::array<std::string_view, 2> kStyles = {"kernel", "call"};
        operation.cpu = cpu(json);
        if (json.has("style"))
            operation.style = static_cast<EmitStyle>(json.at("style").word(kStyles));
        operation.type = last_type_ = bytes(json.at("type"), last_type_);
        operation.origin = static_cast<std::uint8_t>(number_or_zero(json, "origin", 255));
        operation.timestamp = json.at("timestamp").number(0, kAny64);
        if (json.has("extra_header"))
            operation.extra_header = last_extra_header_ =
                bytes(json.at("extra_header"), last_extra_header_);
        operation.payload = payload(json.at("payload"));
    }

    void read_swap(const JsonReader& json, LoggedOperation& operation) {
        json.expect_names({"do", "cpu", "capacity_bytes", "positions", "position", "report_bytes"});
        operation.cpu = cpu(json);
        operation.swap.capacity_bytes = json.at("capacity_bytes").number(1, kMaximumCapacityBytes);
        operation.swap.rule =
            static_cast<PositionRule>(json.at("positions").word(kPositionRuleNames));
        operation.swap.position = number_or_zero(json, "position", kAny64);
    }

    void read_about_buffer(const JsonReader& json, LoggedOperation& operation) {
        operation.buffer = json.at("buffer").number(0, kMaximumBuffers);
        if (operation.kind == OperationKind::set_fault) {
            json.expect_names({"do", "buffer", "fault", "detail", "report_bytes"});
            operation.fault = static_cast<BufferFault>(json.at("fault").word(kFaultNames));
            operation.detail = bytes(json.at("detail"));
        } else if (operation.kind == OperationKind::checkpoint_idle) {
            json.expect_names({"do", "cpu", "buffer", "delivered_bytes", "report_bytes"});
            operation.cpu = cpu(json);
            operation.checkpoint_bytes = json.at("delivered_bytes").number(0, kAny64);
        } else {
            json.expect_names({"do", "buffer", "report_bytes"});
        }
    }

    HistoryLog& log_;
    LoggedBytes last_type_;
    LoggedBytes last_extra_header_;
    std::uint64_t report_bytes_ = 0;
};

HistoryLog read_history(const JsonReader& json) {
    json.expect_names({"complete", "cpus", "capacity_bytes", "start_positions", "first_sequence",
                       "first_generation", "first_futex_counter", "maximum_call_event_bytes",
                       "boot_capacity_bytes", "kept_payload_bytes", "report_bytes", "operations"});
    HistoryLog log;
    HistorySettings& settings = log.settings;
    log.complete = json.at("complete").truth();
    settings.cpus = number32(json.at("cpus"), 1, kMaximumCpus);
    settings.capacity_bytes = json.at("capacity_bytes").number(1, kMaximumCapacityBytes);
    const JsonReader starts = json.at("start_positions");
    const std::size_t start_count = starts.count(kMaximumCpus);
    for (std::size_t i = 0; i < start_count; ++i) {
        const JsonReader start = starts.item(i);
        settings.start_positions.push_back(start.number(0, kAny64));
    }
    settings.first_sequence = json.at("first_sequence").number(1, kAny64);
    settings.first_generation = json.at("first_generation").number(0, kAny64);
    settings.first_futex_counter = number32(json.at("first_futex_counter"), 0, kAny32);
    settings.maximum_call_event_bytes = json.at("maximum_call_event_bytes").number(0, kAny64);
    if (json.has("boot_capacity_bytes"))
        settings.boot_capacity_bytes =
            json.at("boot_capacity_bytes").number(1, kMaximumCapacityBytes);
    log.kept_payload_bytes =
        json.at("kept_payload_bytes").number(0, HistoryLog::kMaximumKeptPayloadBytes);
    const JsonReader operations = json.at("operations");
    const std::size_t count = operations.count(HistoryLog::kMaximumOperations);
    if (!log.complete && count > 0) operations.fail("an empty list where complete is false");
    LogReader reader(log);
    for (std::size_t i = 0; i < count; ++i) {
        const JsonReader item = operations.item(i);
        reader.read(item);
    }
    log.report_bytes = json.at("report_bytes").number(0, kAny64);
    return log;
}

BufferState read_state(const JsonReader& json) {
    json.expect_names(
        {"buffer", "write_pos", "tail_pos", "generation", "futex_counter", "need_wake", "retired"});
    BufferState state;
    state.buffer = json.at("buffer").number(0, kAny64);
    state.write_pos = json.at("write_pos").number(0, kAny64);
    state.tail_pos = json.at("tail_pos").number(0, kAny64);
    state.generation = json.at("generation").number(0, kAny64);
    state.futex_counter = number32(json.at("futex_counter"), 0, kAny32);
    state.need_wake = static_cast<std::uint8_t>(json.at("need_wake").number(0, 255));
    state.retired = json.at("retired").truth();
    return state;
}

TimelineStep read_step(const JsonReader& json) {
    json.expect_names({"kind", "thread", "cpu", "text", "clause", "instruction", "source",
                       "sequence", "state", "decisive", "why"});
    TimelineStep step;
    step.kind = static_cast<StepKind>(json.at("kind").word(kStepKindNames));
    step.thread = static_cast<std::int32_t>(
        number_or_zero(json, "thread", std::numeric_limits<std::int32_t>::max()));
    if (json.has("cpu")) step.cpu = number32(json.at("cpu"), 0, kAny32);
    step.text = json.at("text").bytes(kMaximumTextFieldBytes);
    step.clause = text_or_empty(json, "clause");
    step.instruction = text_or_empty(json, "instruction");
    step.source = text_or_empty(json, "source");
    step.sequence = number_or_zero(json, "sequence", kAny64);
    if (json.has("state")) step.state = read_state(json.at("state"));
    step.decisive = json.has("decisive") && json.at("decisive").truth();
    step.why = text_or_empty(json, "why");
    return step;
}

Timeline read_timeline(const JsonReader& json) {
    json.expect_names({"left_out", "steps"});
    // The number of the last step must fit in 64 bits.
    const std::uint64_t left_out = json.at("left_out").number(0, kAny64 - kMaximumSteps);
    std::vector<TimelineStep> read;
    const JsonReader steps = json.at("steps");
    const std::size_t count = steps.count(kMaximumSteps);
    for (std::size_t i = 0; i < count; ++i) {
        const JsonReader item = steps.item(i);
        read.push_back(read_step(item));
    }
    return Timeline::from(std::move(read), left_out);
}

JudgeOptions read_judge(const JsonReader& json) {
    json.expect_names({"exited_with_zero", "cut_short", "maximum_findings_per_code"});
    JudgeOptions options;
    options.exited_with_zero = json.at("exited_with_zero").truth();
    options.cut_short = json.at("cut_short").truth();
    options.maximum_findings_per_code =
        json.at("maximum_findings_per_code").number(1, kMaximumFindings);
    return options;
}

void read_record(const JsonReader& json, RunRecord& record) {
    if (json.has("schedule")) record.schedule = read_schedule(json.at("schedule"));
    if (json.has("points")) record.points = read_points(json.at("points"));
    record.judge_options = read_judge(json.at("judge"));
    read_findings(json.at("findings"), record);
    record.history = read_history(json.at("history"));
    const JsonReader report = json.at("report");
    report.expect_names({"left_out_bytes", "lines"});
    record.report_left_out = report.at("left_out_bytes").number(0, kAny64);
    record.report = read_lines(report.at("lines"), kMaximumReportLines, kMaximumReportBytes);
    record.standard_error = read_lines(json.at("standard_error"), kMaximumStandardErrorBytes + 1,
                                       kMaximumStandardErrorBytes);
    record.timeline = read_timeline(json.at("timeline"));
}

FailureFile read_file(const JsonReader& json) {
    if (!json.has("kmes_failure") && json.has("schema") && json.has("cases"))
        throw FormatError("this is a JSON report; expected a failure file, as --save DIR makes it");
    // Check the version first: another version may have other members.
    const JsonReader version = json.at("kmes_failure");
    if (version.number(0, kAny64) != kFailureFormat)
        version.fail(fmt::format("{}, the only format that this suite knows", kFailureFormat));
    json.expect_names({"kmes_failure", "suite", "case", "level", "clause", "message", "run",
                       "schedule", "nearest_passing", "points", "judge", "findings", "history",
                       "report", "standard_error", "timeline"});
    FailureFile file;
    file.suite = json.at("suite").bytes(kMaximumTextFieldBytes);
    file.case_id = json.at("case").bytes(kMaximumTextFieldBytes);
    const JsonReader level = json.at("level");
    const auto read_level = level_from_name(level.bytes(kMaximumTextFieldBytes));
    if (!read_level) level.fail("must, should, erratum or robust");
    file.level = *read_level;
    file.clause = json.at("clause").bytes(kMaximumTextFieldBytes);
    file.message = json.at("message").bytes(kMaximumTextFieldBytes);
    read_run(json.at("run"), file);
    read_record(json, file.record);
    file.record.judge_options.clause = clause_of_id(file.case_id);
    if (json.has("nearest_passing"))
        file.nearest_passing = read_schedule(json.at("nearest_passing"));
    file.settings.schedule = file.record.schedule;
    return file;
}

}  // namespace

ReadFailure failure_from_json(std::string_view text) {
    ReadFailure read;
    if (text.size() > kMaximumFailureFileBytes) {
        read.error = fmt::format("the file has {} bytes; expected at most {}", text.size(),
                                 kMaximumFailureFileBytes);
        return read;
    }
    try {
        const nlohmann::json json = parse_json(text, "--save", kMaximumFailureFileValues);
        const JsonReader root(json);
        read.file = read_file(root);
    } catch (const FormatError& error) {
        read.error = error.what();
    }
    return read;
}

}  // namespace kmes::conformance
