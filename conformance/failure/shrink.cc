// SPDX-License-Identifier: MIT
//
// See shrink.h. Every step keeps only schedules that fail, and plays each schedule at most once.
#include "conformance/failure/shrink.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "conformance/failure/schedule_text.h"

namespace kmes::conformance {
namespace {

// The search for a passing schedule gets at least this part of all runs.
constexpr std::uint32_t kShareOfPassing = 4;

// Thrown where the limit of runs is reached; caught in shrink().
struct OutOfRuns {};

bool same_place(const AccessPoint& a, const AccessPoint& b) {
    AccessPoint whole_a = a;
    AccessPoint whole_b = b;
    whole_a.split_bytes = whole_b.split_bytes = 0;
    return whole_a == whole_b;
}

class Search {
  public:
    Search(const Schedule& failing, const PlaySchedule& play,
           const std::vector<AccessPoint>& points, const ShrinkLimits& limits)
        : play_(play), points_(points), limits_(limits), best_(failing) {}

    Shrunk run() {
        Shrunk result;
        // The runs for the second search are kept back from the first.
        runs_at_most_ = limits_.runs - limits_.runs / kShareOfPassing;
        result.whole = within_limit([&] {
            result.fails = fails_again();
            while (result.fails && make_smaller()) {
            }
        });
        result.smallest = best_;
        runs_at_most_ = limits_.runs;
        if (result.fails)
            result.whole = within_limit([&] { find_passing(result); }) && result.whole;
        result.runs = runs_;
        return result;
    }

  private:
    template <typename Part>
    static bool within_limit(const Part& part) {
        try {
            part();
            return true;
        } catch (const OutOfRuns&) {
            return false;
        }
    }

    Trial play(const Schedule& schedule) {
        if (runs_ >= runs_at_most_) throw OutOfRuns{};
        ++runs_;
        return play_(schedule);
    }

    bool fails_again() {
        for (std::uint32_t i = 0; i < limits_.runs_to_fail; ++i) {
            if (play(best_) == Trial::fails) return true;
        }
        return false;
    }

    static auto key(const Schedule& schedule) {
        return std::make_tuple(schedule.scenario, schedule.seed, schedule.moves);
    }

    // Plays a candidate once. If it fails, it is the best one from now on.
    bool take(Schedule candidate) {
        if (candidate == best_) return false;
        const auto known = tried_.find(key(candidate));
        if (known != tried_.end()) return false;
        const Trial trial = play(candidate);
        tried_.emplace(key(candidate), trial);
        if (trial != Trial::fails) return false;
        best_ = std::move(candidate);
        return true;
    }

    // Tries every kind of reduction once. Returns true if something became smaller.
    bool make_smaller() {
        bool smaller = fewer_moves();
        for (std::size_t i = 0; i < best_.moves.size(); ++i) {
            smaller = simpler_action(i) || smaller;
            smaller = smaller_parameter(i) || smaller;
            smaller = more_written(i) || smaller;
            smaller = same_cpu(i) || smaller;
            smaller = earlier_point(i) || smaller;
        }
        return smaller;
    }

    // Halves first, then quarters, down to single moves.
    bool fewer_moves() {
        bool smaller = false;
        if (best_.moves.empty()) return false;
        for (std::size_t size = std::max<std::size_t>(best_.moves.size() / 2, 1);; size /= 2) {
            for (std::size_t from = 0; from < best_.moves.size();) {
                if (take(without(from, size)))
                    smaller = true;  // the next moves have taken its index
                else
                    from += size;
            }
            if (size == 1) return smaller;
        }
    }

    Schedule without(std::size_t from, std::size_t count) const {
        Schedule candidate = best_;
        const auto begin = candidate.moves.begin() + static_cast<std::ptrdiff_t>(from);
        const std::size_t left = candidate.moves.size() - from;
        candidate.moves.erase(begin, begin + static_cast<std::ptrdiff_t>(std::min(count, left)));
        return candidate;
    }

    Schedule with(std::size_t index, const Move& move) const {
        Schedule candidate = best_;
        candidate.moves[index] = move;
        return candidate;
    }

    bool simpler_action(std::size_t index) {
        const Move now = best_.moves[index];
        for (int action = 0; action < static_cast<int>(now.action); ++action) {
            // The meaning of a parameter depends on its action.
            if (take(with(index, {now.point, static_cast<Action>(action), 0, now.further})))
                return true;
        }
        return false;
    }

    bool same_cpu(std::size_t index) {
        Move move = best_.moves[index];
        move.further = 0;
        return take(with(index, move));
    }

    // `whole` first: the simplest state of an event in flight.
    bool more_written(std::size_t index) {
        Move move = best_.moves[index];
        const auto now = static_cast<int>(move.written);
        for (int written = 0; written < now; ++written) {
            move.written = static_cast<Written>(written);
            if (take(with(index, move))) return true;
        }
        return false;
    }

    // Tries zero, one, and then halves: from the largest that did not fail towards the one that
    // fails.
    bool smaller_parameter(std::size_t index) {
        bool smaller = false;
        const auto take_parameter = [&](std::uint64_t parameter) {
            Move move = best_.moves[index];
            move.parameter = parameter;
            const bool taken = take(with(index, move));
            smaller = smaller || taken;
            return taken;
        };
        if (best_.moves[index].parameter == 0 || take_parameter(0)) return smaller;
        std::uint64_t passes = 0;
        if (best_.moves[index].parameter > 1 && take_parameter(1)) return true;
        while (best_.moves[index].parameter - passes > 1) {
            const std::uint64_t middle = passes + (best_.moves[index].parameter - passes) / 2;
            if (!take_parameter(middle)) passes = middle;
        }
        return smaller;
    }

    bool earlier_point(std::size_t index) {
        bool smaller = false;
        const auto take_point = [&](const AccessPoint& point) {
            Move move = best_.moves[index];
            move.point = point;
            const bool taken = take(with(index, move));
            smaller = smaller || taken;
            return taken;
        };
        AccessPoint point = best_.moves[index].point;
        if (point.split_bytes != 0) {
            point.split_bytes = 0;
            take_point(point);
        }
        // In a move of a row, the phase is the number of its step.
        const bool has_phase = !is_of_a_row(point.kind);
        for (std::uint32_t phase = 0; has_phase && phase < best_.moves[index].point.phase;
             ++phase) {
            point = best_.moves[index].point;
            point.phase = phase;
            point.occurrence = 1;
            if (take_point(point)) break;
        }
        std::uint64_t passes = 0;
        while (best_.moves[index].point.occurrence - passes > 1) {
            const std::uint64_t occurrence = best_.moves[index].point.occurrence;
            point = best_.moves[index].point;
            // The first occurrences are the likely ones.
            point.occurrence = passes < 3 ? passes + 1 : passes + (occurrence - passes) / 2;
            if (!take_point(point)) passes = point.occurrence;
        }
        return smaller;
    }

    // -- The nearest schedule that passes --

    // Calls `use(schedule, difference)` for each neighbour in order until it returns true. One
    // neighbour exists at a time: a schedule of a file may have thousands of moves, and each
    // neighbour is a copy of it.
    template <typename Use>
    void each_neighbour(const Use& use) const {
        const std::size_t count = best_.moves.size();
        for (std::size_t i = 0; i < count; ++i)
            if (each_point(i, use)) return;
        for (std::size_t i = 0; i < count; ++i) {
            Move move = best_.moves[i];
            if (move.parameter == 0) continue;
            --move.parameter;
            if (use(with(i, move), "with the parameter less by one")) return;
        }
        for (std::size_t i = 0; i < count; ++i) {
            Move move = best_.moves[i];
            if (move.written == Written::whole) continue;
            move.written = static_cast<Written>(static_cast<int>(move.written) - 1);
            if (use(with(i, move), "with more of the event written")) return;
        }
        for (std::size_t i = 0; i < count; ++i)
            if (each_action(i, use)) return;
        for (std::size_t i = 0; i < count; ++i)
            if (use(without(i, 1), count == 1 ? "without the move" : "without one of the moves"))
                return;
    }

    template <typename Use>
    bool each_point(std::size_t index, const Use& use) const {
        const Move move = best_.moves[index];
        if (move.point.kind == PointKind::row_step) return false;
        const auto use_point = [&](const AccessPoint& point, const char* difference) {
            Move moved = move;
            moved.point = point;
            return use(with(index, moved), difference);
        };
        // A copy, because a play that fails too changes them.
        const std::vector<AccessPoint> points = points_;
        const auto here = std::find_if(points.begin(), points.end(), [&](const AccessPoint& at) {
            return same_place(at, move.point);
        });
        if (here != points.end()) {
            return (here + 1 != points.end() && use_point(*(here + 1), "one access later")) ||
                   (here != points.begin() && use_point(*(here - 1), "one access earlier"));
        }
        AccessPoint point = move.point;
        ++point.occurrence;
        if (use_point(point, "at the next access of the same kind")) return true;
        if (point.occurrence <= 2) return false;
        point.occurrence -= 2;
        return use_point(point, "at the access of the same kind before it");
    }

    template <typename Use>
    bool each_action(std::size_t index, const Use& use) const {
        Move move = best_.moves[index];
        for (int action = static_cast<int>(move.action) - 1; action > 0; --action) {
            move.action = static_cast<Action>(action);
            move.parameter = 0;
            move.written = Written::whole;
            if (use(with(index, move),
                    "with \"" + std::string(action_name(move.action)) + "\" in its place"))
                return true;
        }
        return false;
    }

    bool passes_soundly(const Schedule& schedule) {
        const auto known = tried_.find(key(schedule));
        std::uint32_t passed = 0;
        if (known != tried_.end()) {
            if (known->second != Trial::passes) return false;
            passed = 1;
        }
        for (; passed < limits_.runs_to_pass; ++passed) {
            const Trial trial = play(schedule);
            tried_[key(schedule)] = trial;
            if (trial != Trial::passes) return false;
        }
        return true;
    }

    void find_passing(Shrunk& result) {
        each_neighbour([&](Schedule schedule, const std::string& difference) {
            if (!passes_soundly(schedule)) return false;
            result.nearest_passing = std::move(schedule);
            result.difference = difference;
            return true;
        });
    }

    const PlaySchedule& play_;
    const std::vector<AccessPoint>& points_;
    const ShrinkLimits& limits_;
    Schedule best_;
    std::map<std::tuple<std::string, std::uint64_t, std::vector<Move>>, Trial> tried_;
    std::uint32_t runs_ = 0;
    std::uint32_t runs_at_most_ = 0;
};

}  // namespace

Shrunk shrink(const Schedule& failing, const PlaySchedule& play,
              const std::vector<AccessPoint>& points, const ShrinkLimits& limits) {
    return Search(failing, play, points, limits).run();
}

}  // namespace kmes::conformance
