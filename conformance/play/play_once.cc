// SPDX-License-Identifier: MIT
//
// See play_once.h.
#include "conformance/play/play_once.h"
#include "conformance/monitors/run.h"

#include <fmt/format.h>

#include <memory>
#include <utility>
#include <vector>

#include "conformance/failure/shrink.h"
#include "conformance/model/run_record.h"

namespace kmes::conformance {

namespace {

// The number of accesses that the file of a failing run keeps.
constexpr std::size_t kPointsRecorded = 4096;
// The limit for finding out which of several moves are needed; `shrink` has a larger one.
constexpr std::uint32_t kPlaysToShrink = 120;
constexpr int kFailuresInARow = 2;
// The maximum number of plays until one fails: if threads race, not every play does.
constexpr int kPlaysToRecord = 4;

// Adds the accesses, by which `shrink` moves a point one access earlier or later.
std::shared_ptr<const RunRecord> with_points(const RunRecord& record,
                                             const std::vector<TraceEntry>& trace) {
    auto made = std::make_shared<RunRecord>(record);
    for (const TraceEntry& entry : trace) {
        if (made->points.size() >= kPointsRecorded) break;
        made->points.push_back(entry.point);
    }
    return made;
}

}  // namespace

Played play_once(const Case& the_case, const StageSettings& settings, const Scenario& scenario,
                 const Schedule& schedule, Course course) {
    Played played;
    StageSettings own = settings;
    own.schedule = schedule;
    own.cpus = scenario.cpus;
    own.capacity_bytes = scenario.capacity_bytes;
    Case play = the_case;
    play.run = [&](Stage& stage) {
        Player player(stage, scenario, schedule, played.trace, course);
        return player.play();
    };
    played.outcome = run_on_stage(play, own);
    if (played.outcome.record)
        played.outcome.record = with_points(*played.outcome.record, played.trace.entries);
    return played;
}

Schedule in_moves(const Schedule& schedule, const PlayTrace& trace) {
    if (!schedule.drawn) return schedule;
    return {schedule.scenario, schedule.seed, trace.drawn, false};
}

std::string describe(const Schedule& schedule) {
    if (schedule.drawn) return fmt::format("as drawn from seed {}", schedule.seed);
    std::string text;
    for (const Move& move : schedule.moves)
        text += (text.empty() ? "" : "; then ") + describe(move);
    return text.empty() ? "the play as it is, without a move" : text;
}

Confirmed confirm(const Failure& failure, const StageSettings& settings,
                  const std::function<Played(const StageSettings&, const Schedule&)>& play) {
    Confirmed confirmed{failure.schedule, failure.outcome};
    const auto trial = [&](const Schedule& schedule) {
        // A failure that only happens sometimes does not count.
        for (int i = 0; i < kFailuresInARow; ++i) {
            const CaseOutcome outcome = play(settings, schedule).outcome;
            if (outcome.verdict == Verdict::pass) return Trial::passes;
            const bool is_same =
                outcome.verdict == Verdict::fail && outcome.clause == failure.outcome.clause;
            if (!is_same) return Trial::other;
        }
        return Trial::fails;
    };
    if (failure.schedule.drawn || failure.schedule.moves.size() > 1) {
        ShrinkLimits limits;
        limits.runs = kPlaysToShrink;
        const Shrunk shrunk = shrink(failure.in_moves, trial, {}, limits);
        if (shrunk.fails) confirmed.schedule = shrunk.smallest;
    }
    StageSettings recording = settings;
    recording.record_accesses = true;
    recording.record_timeline = true;
    for (int i = 0; i < kPlaysToRecord; ++i) {
        Played again = play(recording, confirmed.schedule);
        if (again.outcome.verdict != Verdict::fail) continue;
        confirmed.outcome = std::move(again.outcome);
        confirmed.fails_again = true;
        return confirmed;
    }
    // The message describes the play that failed.
    confirmed.schedule = failure.schedule;
    return confirmed;
}

}  // namespace kmes::conformance
