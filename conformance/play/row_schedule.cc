// SPDX-License-Identifier: MIT
//
// See row_schedule.h.
#include "conformance/play/row_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <type_traits>

#include "conformance/play/access_step.h"
#include "conformance/play/step_text.h"

namespace kmes::conformance {

namespace {

template <typename One, typename... Types>
inline constexpr bool kIsOneOf = (std::is_same_v<One, Types> || ...);

template <typename One>
inline constexpr bool kIsProducer =
    kIsOneOf<One, Emit, EmitEverywhere, EmitTyped, EmitHeaders, EmitBytes, EmitSmall, EmitTo,
             Reserve, Batch, Drop, Lap, Outrun, OverwriteAll, Resize, Swap, NudgeRetired, FutexWake,
             SpuriousWake, Times>;

template <typename One>
inline constexpr bool kIsWalk =
    kIsOneOf<One, BeforeEachAccess, BeforeAccessTo, UnderRead, InNextBuffer, HoldAt, ActAt>;

std::vector<const Steps*> lists_of(const InTurn& in_turn) {
    std::vector<const Steps*> lists;
    for (const Steps& list : in_turn.lists) lists.push_back(&list);
    return lists;
}

// The lists of steps inside of a step, in the order of the source.
std::vector<const Steps*> nested(const Step& step) {
    return std::visit(
        [](const auto& one) -> std::vector<const Steps*> {
            using One = std::decay_t<decltype(one)>;
            if constexpr (kIsOneOf<One, AtOnce, InOrder, Times, OnCpu, OnEachCpu, Limited, Around,
                                   AtNextAttach>)
                return {&one.steps};
            else if constexpr (kIsOneOf<One, InTurn>)
                return lists_of(one);
            else if constexpr (kIsOneOf<One, BeforeEachAccess>)
                return {&one.before, &one.wake, &one.actions, &one.afterwards};
            else if constexpr (kIsOneOf<One, BeforeAccessTo>)
                return {&one.before, &one.wake, &one.actions};
            else if constexpr (kIsOneOf<One, UnderRead>)
                return {&one.wake, &one.actions};
            else if constexpr (kIsOneOf<One, InNextBuffer>)
                return {&one.before, &one.actions};
            else if constexpr (kIsOneOf<One, HoldStores>)
                return {&one.wake};
            else if constexpr (kIsOneOf<One, HoldAt>)
                return {&one.before, &one.wake, &one.meanwhile, &one.afterwards};
            else if constexpr (kIsOneOf<One, ActAt>)
                return {&one.before, &one.wake, &one.actions};
            else
                return {};
        },
        step.what);
}

bool counts_first_of_each(const Step& walk) {
    const auto* each = std::get_if<BeforeEachAccess>(&walk.what);
    return each != nullptr && each->last == 0;
}

std::string problem_of(const Move& move, const RowSteps& row) {
    const AccessPoint& point = move.point;
    if (!is_of_a_row(point.kind)) return "is of an explored case; expected a move of a row";
    if (point.phase < 1 || point.phase > row.count())
        return fmt::format("has step (phase) {}; expected a step of this row, 1 to {}", point.phase,
                           row.count());
    const Step& step = row.step(point.phase);
    const StepRole expected =
        point.kind == PointKind::row_step ? StepRole::producer : StepRole::walk;
    if (role_of(step) != expected)
        return fmt::format("has step (phase) {}, which is no {} of this row", point.phase,
                           expected == StepRole::producer ? "producer step" : "walk");
    if (move.action != Action::nothing || move.further != 0 || move.written != Written::whole)
        return "has an action of its own; a move of a row has the actions of its step";
    const std::uint64_t most = count_of(step).value_or(0);
    if (move.parameter > most)
        return fmt::format("has parameter {}; expected at most {}, as the row has", move.parameter,
                           most);
    if (expected == StepRole::producer) return "";
    if (point.kind == PointKind::row_first_access && !counts_first_of_each(step))
        return "has kind row_first_access; this walk counts every access (row_access)";
    if (point.occurrence < 1 || point.occurrence > last_access_of(step))
        return fmt::format("has occurrence {}; expected an access of this walk, 1 to {}",
                           point.occurrence, last_access_of(step));
    return "";
}

}  // namespace

StepRole role_of(const Step& step) {
    return std::visit(
        [](const auto& one) {
            using One = std::decay_t<decltype(one)>;
            if constexpr (kIsWalk<One>) return StepRole::walk;
            return kIsProducer<One> ? StepRole::producer : StepRole::structure;
        },
        step.what);
}

std::optional<std::uint64_t> count_of(const Step& step) {
    return std::visit(
        [](const auto& one) -> std::optional<std::uint64_t> {
            using One = std::decay_t<decltype(one)>;
            if constexpr (kIsOneOf<One, Emit>) {
                if (one.count.of != Amount::Of::nothing) return std::nullopt;
                return one.count.more;
            } else if constexpr (kIsOneOf<One, EmitEverywhere, EmitHeaders, Times>) {
                return one.count;
            } else if constexpr (kIsOneOf<One, NudgeRetired>) {
                return one.times;
            } else if constexpr (kIsOneOf<One, BeforeEachAccess>) {
                if (one.spurious_wakes < 1) return std::nullopt;
                return static_cast<std::uint64_t>(one.spurious_wakes) - 1;
            } else {
                return std::nullopt;
            }
        },
        step.what);
}

std::uint64_t last_access_of(const Step& walk) {
    if (const auto* each = std::get_if<BeforeEachAccess>(&walk.what))
        return each->last == 0 ? kWalkAccessesAtMost : each->last;
    if (const auto* next = std::get_if<InNextBuffer>(&walk.what)) return next->last;
    return std::get_if<UnderRead>(&walk.what) != nullptr ? 1 : kStepAccessesAtMost - 1;
}

RowSteps::RowSteps(const Steps& before_start, const Steps& steps) {
    add(before_start);
    add(steps);
}

void RowSteps::add(const Steps& steps) {
    for (const Step& step : steps) {
        steps_.push_back(&step);
        numbers_.emplace(&step, count());
        for (const Steps* inner : nested(step)) add(*inner);
    }
}

std::uint32_t RowSteps::number_of(const Step& step) const {
    const auto found = numbers_.find(&step);
    return found == numbers_.end() ? 0 : found->second;
}

AccessPoint point_of(std::uint32_t walk, std::uint32_t cpu, const AccessNumber& access) {
    AccessPoint point;
    point.phase = walk;
    point.cpu = cpu;
    point.occurrence = access.number;
    point.kind = access.counted == Counted::first_of_each ? PointKind::row_first_access
                                                          : PointKind::row_access;
    return point;
}

Schedule schedule_of(const RowSteps& row, std::uint64_t seed, std::span<const AccessPoint> plays) {
    Schedule schedule{std::string(kRowScenario), seed, {}};
    for (std::uint32_t number = 1; number <= row.count(); ++number) {
        const Step& step = row.step(number);
        if (role_of(step) != StepRole::producer) continue;
        AccessPoint point;
        point.phase = number;
        point.kind = PointKind::row_step;
        schedule.moves.push_back({point, Action::nothing, count_of(step).value_or(0)});
    }
    // A walk that is played again has the same points. A schedule has each once.
    std::set<AccessPoint> seen;
    for (const AccessPoint& point : plays) {
        if (!seen.insert(point).second) continue;
        schedule.moves.push_back(
            {point, Action::nothing, count_of(row.step(point.phase)).value_or(0)});
    }
    return schedule;
}

std::string problem_of(const Schedule& schedule, const RowSteps& row) {
    if (schedule.scenario != kRowScenario)
        return fmt::format("its scenario is \"{}\"; expected \"{}\"", schedule.scenario,
                           kRowScenario);
    if (schedule.drawn) return "its moves are drawn; a row has only moves that are written";
    for (std::size_t i = 0; i < schedule.moves.size(); ++i) {
        const std::string problem = problem_of(schedule.moves[i], row);
        if (!problem.empty()) return fmt::format("move {} {}", i + 1, problem);
    }
    return "";
}

std::string describe(const Move& move, const RowSteps& row) {
    const AccessPoint& point = move.point;
    if (point.phase < 1 || point.phase > row.count()) return fmt::format("step {}", point.phase);
    const Step& step = row.step(point.phase);
    if (point.kind == PointKind::row_step)
        return fmt::format("step {}: {}", point.phase, describe(step, move.parameter));
    return fmt::format(
        "step {}, CPU {}: {}", point.phase, point.cpu,
        describe_walk(
            step,
            {point.kind == PointKind::row_first_access ? Counted::first_of_each : Counted::all,
             point.occurrence},
            move.parameter));
}

RowChoice::RowChoice(const RowSteps& row, const Schedule* schedule)
    : row_(row), schedule_(schedule) {}

const Move* RowChoice::move_of(const Step& step) const {
    const std::uint32_t number = row_.number_of(step);
    const auto found =
        std::find_if(schedule_->moves.begin(), schedule_->moves.end(),
                     [number](const Move& move) { return move.point.phase == number; });
    return found == schedule_->moves.end() ? nullptr : &*found;
}

bool RowChoice::plays(const Step& step) const {
    return is_whole() || row_.number_of(step) == 0 || role_of(step) != StepRole::producer ||
           move_of(step) != nullptr;
}

std::uint64_t RowChoice::count(const Step& step, std::uint64_t as_written) const {
    if (is_whole() || !count_of(step)) return as_written;
    const Move* move = move_of(step);
    return move == nullptr ? as_written : move->parameter;
}

std::optional<std::vector<AccessNumber>> RowChoice::accesses(const Step& walk,
                                                             std::uint32_t cpu) const {
    if (is_whole()) return std::nullopt;
    const std::uint32_t number = row_.number_of(walk);
    std::vector<AccessNumber> chosen;
    for (const Move& move : schedule_->moves) {
        const AccessPoint& point = move.point;
        if (point.phase != number || point.cpu != cpu) continue;
        const bool is_first = point.kind == PointKind::row_first_access;
        chosen.push_back({is_first ? Counted::first_of_each : Counted::all, point.occurrence});
    }
    return chosen;
}

}  // namespace kmes::conformance
