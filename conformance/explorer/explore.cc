// SPDX-License-Identifier: MIT
//
// See explore.h.
#include "conformance/explorer/explore.h"

#include <fmt/format.h>
#include <malloc.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <random>
#include <thread>
#include <utility>

#include "conformance/explorer/cover.h"
#include "conformance/explorer/equivalence.h"
#include "conformance/explorer/pairs.h"
#include "conformance/explorer/parts.h"
#include "conformance/explorer/points.h"
#include "conformance/play/play_once.h"
#include "conformance/play/workers.h"

namespace kmes::conformance {

namespace {

using SearchClock = std::chrono::steady_clock;

// After the single moves come schedules of several moves, at most this many.
constexpr std::uint64_t kSeveralQuick = 250;
constexpr std::uint64_t kSeveralDeep = 5000;
constexpr std::uint64_t kSeveralToTheLimit = UINT64_MAX;
constexpr std::size_t kWorkersAtMost = 8;
// How many plays of one move keep their further course, for a second move.
constexpr std::size_t kBranchesKept = 200;
constexpr std::size_t kBranchesAtLeast = 20;
constexpr std::size_t kMovesToABranch = 10;
constexpr std::uint64_t kSuiteErrorsAtMost = 3;
// The minimum, whatever the clock says: a verdict on a slow machine counts as well.
constexpr std::uint64_t kPlaysAtLeast = 24;
constexpr int kHeapBytesKept = 16 << 20;

bool has_several_threads(const std::vector<TraceEntry>& trace) {
    return std::any_of(trace.begin(), trace.end(),
                       [](const TraceEntry& entry) { return entry.thread > 1; });
}

// Keeps runner and testee on one processor: a stop then wakes no other processor.
void stay_on(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    sched_setaffinity(0, sizeof set, &set);
}

class Search {
  public:
    Search(const Case& the_case, const StageSettings& settings, const Scenario& scenario,
           double share)
        : case_(the_case),
          settings_(settings),
          scenario_(scenario),
          begin_(SearchClock::now()),
          random_(settings.seed + settings.part.index),
          cover_(settings.explore.deep, settings.part) {
        settings_.record_accesses = false;
        settings_.record_timeline = false;
        seconds_ = settings.explore.seconds * share;
        several_at_most_ = settings.explore.deep           ? share_of(kSeveralDeep)
                           : settings.explore.to_the_limit ? kSeveralToTheLimit
                                                           : kSeveralQuick;
    }

    CaseOutcome run() {
        const Schedule plain{std::string(scenario_.name), settings_.seed, {}};
        const Played baseline = play_once(case_, settings_, scenario_, plain);
        if (baseline.outcome.verdict == Verdict::fail) {
            failure_ = Failure{plain, plain, baseline.outcome};
            return report_failure();
        }
        if (baseline.outcome.verdict != Verdict::pass) return baseline.outcome;
        has_several_threads_ = has_several_threads(baseline.trace.entries);
        const bool is_deep = settings_.explore.deep;
        points_ = points_of(baseline.trace.entries, scenario_.first_explored_phase,
                            is_deep           ? Density::all
                            : scenario_.tears ? Density::all_data
                                              : Density::thinned);
        // The begin of a phase is a point of every trace.
        const bool has_access = std::ranges::any_of(
            points_, [](const AccessPoint& point) { return point.kind == PointKind::access; });
        if (!has_access && !is_drawn()) return nothing_to_stop_at();
        is_cut_ = baseline.trace.is_cut;
        if (!is_drawn()) take_singles(baseline.trace, is_deep);
        branches_left_ =
            std::clamp(singles_.size() / kMovesToABranch, kBranchesAtLeast, kBranchesKept);
        begin_ = SearchClock::now();
        run_workers();
        return conclude(baseline.trace.entries.size());
    }

  private:
    CaseOutcome nothing_to_stop_at() const {
        return {Verdict::unsupported, std::string(case_.clause()),
                "no access to the events was seen at which the suite can stop the consumer", ""};
    }

    void take_singles(const PlayTrace& trace, bool is_deep) {
        const std::vector<Move> all = moves_at(points_, scenario_, has_several_threads_, is_deep);
        const Distinct distinct = without_equivalent(all, trace.entries, scenario_.cpus);
        singles_ = distinct.moves;
        saved_ = distinct.same_as.size();
        if (!has_several_moves()) return;
        if (is_deep) take_first_of_pairs(all, distinct, trace);
        for (const Move& prelude : cover_.preludes(points_, singles_)) {
            singles_.push_back(prelude);
            if (distinct.same_as.contains(prelude)) --saved_;
        }
    }

    void take_first_of_pairs(const std::vector<Move>& all, const Distinct& distinct,
                             const PlayTrace& trace) {
        const std::vector<AccessPoint> points =
            points_of(trace.entries, scenario_.first_explored_phase, Density::thinned);
        first_of_pairs_ = first_of_pairs(all, distinct, {points.begin(), points.end()});
        std::erase_if(first_of_pairs_.at_one_point,
                      [this](const std::vector<Move>& pair) { return !is_mine(pair.front()); });
    }

    bool is_drawn() const { return scenario_.turning != Turning::none; }

    // What this part has of so many plays, rounded up.
    std::uint64_t share_of(std::uint64_t plays) const {
        return (plays + settings_.part.total - 1) / settings_.part.total;
    }
    bool is_mine(const Move& move) const { return is_in_part(move, settings_.part); }
    bool has_several_moves() const { return !scenario_.tears && scenario_.holds_with_bytes == 0; }
    // The move alone: it is of this part, or cells of this part begin with its course.
    bool plays_alone(const Move& move) const {
        return is_mine(move) || (has_several_moves() && cover_.needs(move));
    }

    void run_workers() {
        // A play allocates and frees megabytes for histories. Without this setting, each block
        // would be returned to the kernel, which must interrupt the processors of all workers.
        mallopt(M_TOP_PAD, kHeapBytesKept);
        mallopt(M_TRIM_THRESHOLD, 4 * kHeapBytesKept);
        const ChildSignalBlocked blocked;
        const std::vector<int> cpus = allowed_processors();
        const std::size_t count = std::clamp<std::size_t>(cpus.size(), 1, kWorkersAtMost);
        std::vector<std::thread> workers;
        for (std::size_t i = 0; i < count; ++i) {
            workers.emplace_back([this, &cpus, i] {
                if (!cpus.empty()) stay_on(cpus[i]);
                work();
            });
        }
        for (std::thread& worker : workers) worker.join();
    }

    void work() {
        while (const std::optional<Play> next = next_play()) {
            const auto play = [&] {
                return play_once(case_, settings_, scenario_, next->schedule, next->course);
            };
            Played played = play();
            if (played.outcome.verdict == Verdict::suite_error && !*settings_.stop) played = play();
            take(*next, std::move(played));
        }
    }

    double seconds_since_begin() const {
        return std::chrono::duration<double>(SearchClock::now() - begin_).count();
    }

    bool is_over() const {
        return failure_ || *settings_.stop || suite_errors_ > kSuiteErrorsAtMost ||
               (seconds_ > 0 && played_ + not_shown_ >= kPlaysAtLeast &&
                seconds_since_begin() >= seconds_);
    }

    // A schedule, and which parts of its course are kept.
    struct Play {
        Schedule schedule;
        Course course = Course::moves_only;
        bool is_branch = false;           // keep its course for a second move
        std::optional<std::size_t> cell;  // of the cover
    };

    std::optional<Play> next_play() {
        const std::lock_guard<std::mutex> lock(mutex_);
        std::optional<Play> next_one = next();
        if (!next_one) return std::nullopt;
        Play& play = *next_one;
        if (play.schedule.moves.size() != 1) return next_one;
        // Choose a sample of all single moves, each with the same probability.
        const std::size_t left = 1 + singles_.size() - next_single_;
        play.is_branch = random_() % left < branches_left_;
        if (play.is_branch) --branches_left_;
        const Move& move = play.schedule.moves.front();
        if (play.is_branch || begins_pairs(move) || cover_.needs(move)) play.course = Course::whole;
        return next_one;
    }

    bool begins_pairs(const Move& move) const {
        return is_mine(move) && first_of_pairs_.with_later_ones.contains(move);
    }

    std::optional<Play> next() {
        if (is_over()) return std::nullopt;
        Play play;
        Schedule& schedule = play.schedule;
        schedule = {std::string(scenario_.name), settings_.seed, {}};
        while (next_single_ < singles_.size()) {
            const Move& move = singles_[next_single_++];
            if (!plays_alone(move)) continue;
            schedule.moves.push_back(move);
            return play;
        }
        if (!has_several_moves()) return std::nullopt;
        schedule.moves = next_pair();
        if (!schedule.moves.empty()) return play;
        if (several_ >= several_at_most_) return std::nullopt;
        if (std::optional<Cover::Cell> cell = cover_.next(random_)) {
            schedule.moves = std::move(cell->moves);
            play.cell = cell->index;
            // `deep` plays the product in addition to random schedules.
            if (!settings_.explore.deep) ++several_;
            return play;
        }
        schedule.drawn = is_drawn();
        if (schedule.drawn)
            schedule.seed += play_of_part(several_, settings_.part);
        else
            schedule.moves = several_moves();
        ++several_;
        return play;
    }

    // Returns nothing if no further pair is known.
    std::vector<Move> next_pair() {
        if (next_at_one_point_ < first_of_pairs_.at_one_point.size()) {
            ++pairs_;
            return first_of_pairs_.at_one_point[next_at_one_point_++];
        }
        for (; pair_branch_ < pair_branches_.size(); ++pair_branch_, pair_ = 0) {
            const Branch& branch = pair_branches_[pair_branch_];
            while (pair_ < branch.points.size() * kPairActions.size()) {
                const AccessPoint& point = branch.points[pair_ / kPairActions.size()];
                const Action action = kPairActions[pair_ % kPairActions.size()];
                ++pair_;
                if (!is_second_of_pairs(action, point)) continue;
                ++pairs_;
                return {branch.move, Move{point, action, 0}};
            }
        }
        return {};
    }

    std::vector<Move> several_moves() {
        // Two moves, the second in the course that the first has changed; or some moves anywhere.
        if (!branches_.empty() && random_() % 3 != 0) {
            const Branch& branch = branches_[random_() % branches_.size()];
            return {branch.move,
                    random_move(branch.points, scenario_.cpus, has_several_threads_, random_)};
        }
        std::vector<Move> moves;
        for (std::uint64_t i = 0, count = 2 + random_() % 3; i < count; ++i)
            moves.push_back(random_move(points_, scenario_.cpus, has_several_threads_, random_));
        std::sort(moves.begin(), moves.end());
        return moves;
    }

    void take(const Play& play, Played played) {
        const Schedule& schedule = play.schedule;
        const std::lock_guard<std::mutex> lock(mutex_);
        const bool is_made = played.trace.moves_not_made == 0;
        if (play.cell) cover_.note(*play.cell, is_made && played.outcome.verdict == Verdict::pass);
        switch (played.outcome.verdict) {
            case Verdict::fail:
                ++played_;
                if (!failure_)
                    failure_ = Failure{schedule, in_moves(schedule, played.trace),
                                       std::move(played.outcome)};
                return;
            case Verdict::suite_error:
                ++suite_errors_;
                suite_error_ = std::move(played.outcome);
                return;
            case Verdict::pass:
                ++played_;
                if (!is_made) ++not_made_;
                if (!is_made && schedule.moves.size() == 1) ++singles_not_made_;
                break;
            case Verdict::inconclusive:
            case Verdict::unsupported:
                ++not_shown_;
                return;
        }
        if (play.course == Course::whole) keep_branch(play, played.trace.entries);
    }

    void keep_branch(const Play& play, const std::vector<TraceEntry>& trace) {
        const Move& move = play.schedule.moves.front();
        AccessPoint point = move.point;
        point.split_bytes = 0;
        const auto found = std::find_if(trace.begin(), trace.end(), [&](const TraceEntry& entry) {
            return entry.point == point;
        });
        if (found == trace.end()) return;
        Branch branch{move, points_of({found + 1, trace.end()}, 0, Density::thinned)};
        if (branch.points.empty()) return;
        cover_.add(branch);
        if (begins_pairs(move)) pair_branches_.push_back(branch);
        if (play.is_branch) branches_.push_back(std::move(branch));
    }

    CaseOutcome conclude(std::size_t accesses) {
        if (failure_) return report_failure();
        if (suite_errors_ > kSuiteErrorsAtMost || (suite_errors_ > 0 && played_ == 0))
            return suite_error_;
        std::string text =
            is_drawn()
                ? fmt::format("{} schedules by turns in {:.1f} s", played_, seconds_since_begin())
                : fmt::format("{} schedules at {} of {} accesses in {:.1f} s", played_,
                              points_.size(), accesses, seconds_since_begin());
        if (next_single_ < singles_.size())
            text += fmt::format("; the time sufficed for {} of {} single moves", next_single_,
                                singles_.size());
        if (saved_ > 0) text += fmt::format("; {} plays saved by equivalence", saved_);
        if (has_several_moves() && !is_drawn()) text += text_of(cover_.tally());
        if (pairs_ > 0) text += fmt::format("; {} of them pairs, one by one", pairs_);
        if (not_made_ > 0)
            text +=
                fmt::format("; in {} of them the consumer made no access for a move", not_made_);
        if (is_cut_)
            text +=
                "; the consumer was not stopped at the accesses after the first "
                "20000 of a phase";
        if (not_shown_ > 0) text += fmt::format("; {} could not be played", not_shown_);
        if (suite_errors_ > 0)
            text += fmt::format("; {} ended as errors of the suite: {}", suite_errors_,
                                suite_error_.message);
        bool has_nothing_to_move = singles_.empty() && !is_drawn();
        if (has_nothing_to_move && scenario_.holds_with_bytes == 0) return nothing_to_stop_at();
        // The play without moves has passed. With one thread there is no other to hold.
        if (has_nothing_to_move) {
            text = "one thread made all accesses, so no thread can be held";
        } else if (std::ranges::none_of(singles_,
                                        [&](const Move& each) { return is_mine(each); }) &&
                   !is_drawn()) {
            has_nothing_to_move = true;
            text = "other shards play the moves of this scenario";
        }
        CaseOutcome outcome{
            played_ > 0 || has_nothing_to_move ? Verdict::pass : Verdict::inconclusive,
            std::string(case_.clause()), text, ""};
        outcome.explored = Explored{played_, seconds_since_begin(), is_whole(), saved_};
        return outcome;
    }

    std::string text_of(const Cover::Tally& tally) const {
        const bool has_all_courses = next_single_ >= singles_.size();
        if (!has_all_courses) return "";
        std::string text =
            fmt::format("; {} of them two moves, for {} of {} {}", tally.cells_taken, tally.shown,
                        tally.all, settings_.explore.deep ? "cells" : "pairs of action and place");
        if (tally.without_access > 0)
            text += fmt::format(" (no access was seen for {})", tally.without_access);
        return text;
    }

    // Every single move was played and has shown what it does.
    bool is_whole() const {
        return !is_drawn() && next_single_ >= singles_.size() && not_shown_ == 0 &&
               singles_not_made_ == 0 && suite_errors_ == 0 && !is_cut_;
    }

    CaseOutcome report_failure() {
        const auto play = [this](const StageSettings& settings, const Schedule& schedule) {
            return play_once(case_, settings, scenario_, schedule);
        };
        auto [schedule, outcome, fails_again] = confirm(*failure_, settings_, play);
        if (schedule.drawn || !schedule.moves.empty())
            outcome.message = describe(schedule) + ": " + outcome.message;
        outcome.details =
            fmt::format("schedule: {}\nfound in play {} of this scenario: {}\n{}",
                        describe(schedule), played_, scenario_.description,
                        fails_again ? "" : "played again, the same schedule passed\n") +
            outcome.details;
        return outcome;
    }

    const Case& case_;
    StageSettings settings_;
    const Scenario& scenario_;
    SearchClock::time_point begin_;
    double seconds_ = 0;  // 0: no limit
    std::mutex mutex_;
    std::mt19937_64 random_;
    std::vector<AccessPoint> points_;
    std::vector<Move> singles_;
    std::size_t next_single_ = 0;
    std::size_t saved_ = 0;  // single moves left out, because another one leads to the same play
    std::uint64_t several_ = 0;
    std::uint64_t several_at_most_ = 0;
    std::size_t branches_left_ = 0;  // courses still to keep
    std::vector<Branch> branches_;
    Cover cover_;  // of schedules of two moves
    FirstMoves first_of_pairs_;
    std::size_t next_at_one_point_ = 0;
    std::vector<Branch> pair_branches_;
    std::size_t pair_branch_ = 0;
    std::size_t pair_ = 0;  // index of the pair within that branch
    std::uint64_t pairs_ = 0;
    bool has_several_threads_ = false;
    std::uint64_t played_ = 0;
    std::uint64_t not_made_ = 0;  // plays that passed without the access of a move
    std::uint64_t singles_not_made_ = 0;
    bool is_cut_ = false;  // see PlayTrace
    std::uint64_t not_shown_ = 0;
    std::uint64_t suite_errors_ = 0;
    CaseOutcome suite_error_;
    std::optional<Failure> failure_;
};

}  // namespace

CaseOutcome explore(const Case& the_case, const StageSettings& settings, const Scenario& scenario,
                    double share) {
    if (settings.schedule) return play_schedule(the_case, settings, scenario, *settings.schedule);
    // One person debugs one testee: play the scenario without moves.
    if (settings.debug)
        return play_schedule(the_case, settings, scenario,
                             {std::string(scenario.name), settings.seed, {}});
    return Search(the_case, settings, scenario, share).run();
}

CaseOutcome play_schedule(const Case& the_case, const StageSettings& settings,
                          const Scenario& scenario, const Schedule& schedule) {
    if (schedule.scenario != scenario.name)
        return CaseOutcome{Verdict::suite_error, "",
                           fmt::format("the schedule is of scenario \"{}\", this case plays \"{}\"",
                                       schedule.scenario, scenario.name),
                           ""};
    Played played = play_once(the_case, settings, scenario, schedule);
    const bool has_moves = schedule.drawn || !schedule.moves.empty();
    if (has_moves && played.outcome.verdict == Verdict::fail)
        played.outcome.message = describe(schedule) + ": " + played.outcome.message;
    if (played.trace.moves_not_made > 0 && played.outcome.verdict == Verdict::pass)
        played.outcome.message = fmt::format("the consumer made no access for {} of {} moves",
                                             played.trace.moves_not_made, schedule.moves.size());
    return played.outcome;
}

}  // namespace kmes::conformance
