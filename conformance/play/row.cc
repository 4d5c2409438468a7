// SPDX-License-Identifier: MIT
//
// See row.h.
#include "conformance/play/row.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "conformance/model/run_record.h"
#include "conformance/monitors/run.h"
#include "conformance/play/row_player.h"
#include "conformance/play/row_schedule.h"

namespace kmes::conformance {

namespace {

// A failed run that was longer waited for a time limit, and is not repeated.
constexpr std::chrono::seconds kLongestRepeatedRun{20};
// The limit of a failure file.
constexpr std::size_t kMovesAtMost = 10'000;

struct PlayedRow {
    CaseOutcome outcome;
    std::vector<RowPlay> begun;
};

// Plays a row in a process of its own. `schedule`: nullptr for the whole row.
PlayedRow play_once(const Case& the_case, const StageSettings& settings, const Row& row,
                    const RowSteps& steps, const Schedule* schedule) {
    PlayedRow played;
    StageSettings own = settings;
    own.schedule = schedule == nullptr ? std::nullopt : std::optional<Schedule>(*schedule);
    const RowChoice choice(steps, schedule);
    Case play = the_case;
    play.run = [&](Stage& stage) {
        return play_row(stage, row.setup, row.steps, choice, played.begun);
    };
    played.outcome = run_on_stage(play, own);
    return played;
}

bool fails_again(const CaseOutcome& one, const CaseOutcome& other) {
    return other.verdict == Verdict::fail && one.record && other.record &&
           is_same_failure(*one.record, *other.record);
}

CaseOutcome with_schedule(CaseOutcome outcome, Schedule schedule) {
    auto record = std::make_shared<RunRecord>(*outcome.record);
    record->schedule = std::move(schedule);
    outcome.record = std::move(record);
    return outcome;
}

// Returns the plays that may have failed, the most likely first. The driver's findings are from the
// last play.
std::vector<std::size_t> suspects(const PlayedRow& failed) {
    const std::size_t last = failed.begun.size() - 1;
    const RunRecord& record = *failed.outcome.record;
    if (record.findings.empty() || !record.driver_findings.empty()) return {last};
    const std::size_t of_the_finding = play_of(record.findings.front(), failed.begun);
    if (of_the_finding == last) return {last};
    return {of_the_finding, last};
}

// Describes a failure. A row plays many accesses in one process. The failed play is repeated alone,
// with every step recorded. If it does not fail alone, the schedule has all plays up to it.
CaseOutcome report_failure(const Case& the_case, const StageSettings& settings, const Row& row,
                           const RowSteps& steps, const PlayedRow& failed, bool is_worth_another) {
    StageSettings recording = settings;
    recording.record_accesses = recording.record_timeline = true;
    std::vector<AccessPoint> points;
    if (is_worth_another && !failed.begun.empty()) {
        for (const std::size_t suspect : suspects(failed)) {
            const Schedule alone =
                schedule_of(steps, settings.seed, {&failed.begun[suspect].point, 1});
            const PlayedRow again = play_once(the_case, recording, row, steps, &alone);
            if (*settings.stop) break;
            if (!fails_again(failed.outcome, again.outcome)) continue;
            // The second run records more, so its outcome is better, but it may blame another
            // clause. Then keep the outcome of the first run.
            const bool is_same = again.outcome.clause == failed.outcome.clause;
            return with_schedule(is_same ? again.outcome : failed.outcome, alone);
        }
    }
    for (const RowPlay& play : failed.begun) points.push_back(play.point);
    Schedule all = schedule_of(steps, settings.seed, points);
    if (all.moves.size() > kMovesAtMost) return failed.outcome;
    return with_schedule(failed.outcome, std::move(all));
}

CaseOutcome run_row(const Case& the_case, const StageSettings& settings, const Row& row) {
    const RowSteps steps(row.setup.before_start, row.steps);
    if (settings.schedule) {
        const std::string problem = problem_of(*settings.schedule, steps);
        if (!problem.empty())
            return CaseOutcome{Verdict::suite_error, "",
                               "the schedule is not of this case: " + problem, ""};
        return play_once(the_case, settings, row, steps, &*settings.schedule).outcome;
    }
    const auto begin = std::chrono::steady_clock::now();
    PlayedRow played = play_once(the_case, settings, row, steps, nullptr);
    const bool is_worth_another = !played.outcome.has_hung && !settings.debug &&
                                  std::chrono::steady_clock::now() - begin < kLongestRepeatedRun;
    if (played.outcome.verdict != Verdict::fail || !played.outcome.record || *settings.stop)
        return std::move(played.outcome);
    return report_failure(the_case, settings, row, steps, played, is_worth_another);
}

}  // namespace

Batch growing_batch(std::uint64_t count, Amount bytes) {
    Batch batch;
    for (std::uint64_t i = 0; i < count; ++i) batch.sizes.push_back(bytes + i);
    return batch;
}

Steps leave_in_the_old_buffer(std::uint64_t events) {
    return {Emit{events, 120}, Resize{current(), PositionRule::shift, 1000}, Lap{9000}};
}

Steps with_fewer_and_fewer(const Steps& steps) {
    return {each({0u, 1u}, [&steps](std::uint32_t ended) {
        return Steps{Asleep{}, OnCpu{ended, {EndCpu{}}}, Asleep{}, OnCpu{kLastCpu, steps}};
    })};
}

Step overwrite_newest(std::uint64_t bytes) {
    return InOrder{{EmitSmall{current() - bytes}, Emit{1, bytes}}};
}

Case case_of(const Row& row) {
    const CaseText& text = row.text;
    Case made{text.id,          text.level, text.title, text.description,
              text.expectation, row.script, row.demand, text.other_clause};
    if (made.run) return made;
    made.run = [&row](Stage& stage) { return run_row(stage.the_case(), stage.settings(), row); };
    made.schedule_problem = [&row](const Schedule& schedule) {
        return problem_of(schedule, RowSteps(row.setup.before_start, row.steps));
    };
    made.describe_move = [&row](const Move& move) {
        return describe(move, RowSteps(row.setup.before_start, row.steps));
    };
    return made;
}

std::vector<Case> cases_of(std::span<const Row> rows) {
    std::vector<Case> cases;
    for (const Row& row : rows) cases.push_back(case_of(row));
    return cases;
}

}  // namespace kmes::conformance
