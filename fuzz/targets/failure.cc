// SPDX-License-Identifier: MIT
//
// See failure.h.
#include "fuzz/targets/failure.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/failure/drawing.h"
#include "conformance/failure/failure_file.h"
#include "conformance/failure/judge_file.h"
#include "conformance/failure/shrink.h"
#include "conformance/report/text.h"
#include "fuzz/fail.h"
#include "fuzz/fuzzed_bytes.h"
#include "fuzz/targets/failure_edits.h"

namespace kmes::fuzz {
namespace {

using namespace kmes::conformance;

constexpr std::uint8_t kEdits = 1;  // no JSON begins with this byte
constexpr std::size_t kMostErrorBytes = 4096;
constexpr std::uint32_t kRuns = 40;
// The oracle accepts histories of gigabytes and of many laps, which would only be slow.
constexpr std::uint64_t kMostPayloadBytes = 1 << 20;
constexpr std::uint64_t kMostLaps = 2000;

// Checks that the text is one line that a terminal shows unchanged.
void expect_line(std::string_view text, std::string_view what) {
    if (text.empty() || text.size() > kMostErrorBytes || printable(text) != text)
        fail(std::string(what) + " is not one short line of text");
}

void expect_equal_settings(const StageSettings& found, const StageSettings& right) {
    expect(found.testee == right.testee, "the command of the testee changes");
    expect_equal(found.cpus, right.cpus, "run.cpus");
    expect_equal(found.capacity_bytes, right.capacity_bytes, "run.capacity_bytes");
    expect_equal(found.seed, right.seed, "run.seed");
    expect_equal(found.timeout_scale, right.timeout_scale, "run.timeout_scale");
    expect_equal(found.soak_seconds, right.soak_seconds, "run.soak_seconds");
    expect_equal(found.explore.seconds, right.explore.seconds, "run.explore.seconds");
    expect(found.explore.on == right.explore.on && found.explore.deep == right.explore.deep &&
               found.shared == right.shared && found.device == right.device &&
               found.stepper == right.stepper && found.schedule == right.schedule,
           "a setting of the run changes");
}

void expect_equal_records(const RunRecord& found, const RunRecord& right) {
    expect(found.schedule == right.schedule, "the schedule changes");
    expect(found.points == right.points, "the points change");
    expect(found.report == right.report, "the report changes");
    expect_equal(found.report_left_out, right.report_left_out, "report.left_out_bytes");
    expect(found.standard_error == right.standard_error, "standard_error changes");
    expect(found.timeline.steps() == right.timeline.steps(), "the timeline changes");
    expect_equal(found.timeline.left_out(), right.timeline.left_out(), "timeline.left_out");
    expect(std::ranges::equal(found.findings, right.findings, same_finding), "the findings change");
    expect_equal(found.history.operations.size(), right.history.operations.size(),
                 "the number of operations");
}

// A written file must contain everything of an accepted one. Returns the file that is read back.
FailureFile expect_round_trip(const FailureFile& file) {
    ReadFailure again = failure_from_json(to_json(file));
    if (!again.error.empty()) fail("a written file is refused: " + again.error);
    expect(again.file.suite == file.suite && again.file.case_id == file.case_id &&
               again.file.level == file.level && again.file.clause == file.clause &&
               again.file.message == file.message && again.file.stepper == file.stepper &&
               again.file.nearest_passing == file.nearest_passing,
           "a member of the file changes");
    expect_equal_settings(again.file.settings, file.settings);
    expect_equal_records(again.file.record, file.record);
    return std::move(again.file);
}

// Columns of a line in UTF-8.
std::size_t columns_of(std::string_view line) {
    return static_cast<std::size_t>(
        std::count_if(line.begin(), line.end(), [](char byte) { return (byte & 0xC0) != 0x80; }));
}

void expect_drawn(const Timeline& timeline, const DrawingOptions& options) {
    const std::string text = draw(timeline, options);
    expect(text.empty() == timeline.empty(), "a trace without a line");
    expect(printable(text, true) == text, "a trace has a byte that a terminal acts on");
    std::string_view left = text;
    while (!left.empty()) {
        const std::size_t end = left.find('\n');
        expect(end != std::string_view::npos, "a trace ends within a line");
        expect(columns_of(left.substr(0, end)) <= std::clamp<std::size_t>(options.width, 72, 160),
               "a line of the trace is wider than the terminal");
        left.remove_prefix(end + 1);
    }
}

bool is_quick(const HistoryLog& history) {
    std::uint64_t bytes = 0;
    std::uint64_t laps = 0;
    for (const LoggedOperation& operation : history.operations) {
        bytes += operation.payload.length;
        if (operation.laps > kMostLaps) return false;
        laps += operation.laps;
    }
    return bytes <= kMostPayloadBytes && laps <= kMostLaps;
}

void expect_judged(const RunRecord& record, const RunRecord& again) {
    if (!is_quick(record.history)) return;
    const JudgedAgain judged = judge_record(record);
    const JudgedAgain same = judge_record(again);
    expect(judged.error == same.error && judged.equal == same.equal &&
               std::ranges::equal(judged.oracle, same.oracle, same_finding),
           "a file that is read back is judged differently");
    if (!judged.error.empty()) return expect_line(judged.error, "why a file cannot be judged");
    constexpr auto kCodes = static_cast<std::size_t>(FindingCode::contract) + 1;
    // One further finding for each code sums up the rest.
    expect(judged.oracle.size() <= kCodes * (record.judge_options.maximum_findings_per_code + 1),
           "more findings than were asked for");
}

// Plays nothing: the outcome of a schedule follows from the schedule.
Trial trial_of(const Schedule& schedule, std::uint64_t seed) {
    std::uint64_t hash = seed;
    for (const Move& move : schedule.moves)
        hash = hash * 31 + move.point.occurrence + move.parameter +
               static_cast<std::uint64_t>(move.action);
    return hash % 3 == 0 ? Trial::passes : hash % 3 == 1 ? Trial::other : Trial::fails;
}

void expect_smaller(const Schedule& schedule, const std::vector<AccessPoint>& points) {
    std::uint32_t runs = 0;
    const auto play = [&](const Schedule& tried) {
        return ++runs == 1 ? Trial::fails : trial_of(tried, schedule.seed);
    };
    ShrinkLimits limits;
    limits.runs = kRuns;
    const Shrunk shrunk = shrink(schedule, play, points, limits);
    expect_equal(shrunk.runs, runs, "the number of runs");
    expect(runs <= kRuns, "more runs than the limit");
    expect(shrunk.fails, "a schedule that fails is said to pass");
    expect(shrunk.smallest.moves.size() <= schedule.moves.size(), "a schedule becomes larger");
    if (shrunk.smallest != schedule)
        expect(trial_of(shrunk.smallest, schedule.seed) == Trial::fails,
               "the smallest schedule does not fail");
    if (!shrunk.nearest_passing) return;
    expect_line(shrunk.difference, "the difference of the schedule that passes");
    expect(trial_of(*shrunk.nearest_passing, schedule.seed) == Trial::passes,
           "the schedule that passes does not pass");
}

void read_and_use(std::string_view text) {
    const ReadFailure read = failure_from_json(text);
    if (!read.error.empty()) return expect_line(read.error, "an error");
    const FailureFile again = expect_round_trip(read.file);
    const RunRecord& record = read.file.record;
    expect_judged(record, again.record);
    if (text.size() % 2 == 0)
        expect_drawn(record.timeline, {});
    else
        expect_drawn(record.timeline, {.width = 160, .unicode = true, .maximum_lines = 9});
    if (record.schedule) expect_smaller(*record.schedule, record.points);
}

}  // namespace
}  // namespace kmes::fuzz

int kmes_fuzz_failure(const std::uint8_t* data, std::size_t size) {
    kmes::fuzz::FuzzedBytes bytes(data, size);
    if (size == 0 || data[0] != kmes::fuzz::kEdits) {
        kmes::fuzz::read_and_use(bytes.rest());
        return 0;
    }
    bytes.take<std::uint8_t>();
    kmes::fuzz::read_and_use(kmes::fuzz::edited_failure(&bytes));
    return 0;
}
