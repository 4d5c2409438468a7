// SPDX-License-Identifier: MIT
//
// The schedule of a row: the producer steps that are played, and the accesses of its walks. A whole
// run of a row plays all of them. A single failed play becomes a schedule with one access, which
// can be saved, replayed and made smaller. Knows no stage.
#ifndef KMES_CONFORMANCE_PLAY_ROW_SCHEDULE_H_
#define KMES_CONFORMANCE_PLAY_ROW_SCHEDULE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/model/schedule.h"
#include "conformance/play/play.h"
#include "conformance/play/steps.h"

namespace kmes::conformance {

// Schedule::scenario of a row.
inline constexpr std::string_view kRowScenario = "row";

// The role of a step in a schedule.
enum class StepRole {
    structure,  // waits, places and combinations: always played
    producer,   // a schedule can leave it out
    walk,       // actions before accesses of the consumer
};
StepRole role_of(const Step& step);
// The number of actions of a producer step, if the row gives one. For a walk: the number of its
// spurious wakes after the first one.
std::optional<std::uint64_t> count_of(const Step& step);
// The greatest access number that a walk may have in a schedule.
std::uint64_t last_access_of(const Step& walk);

// The steps of a row in the order of the source, each with a number from 1.
class RowSteps {
  public:
    // Both lists must outlive this object.
    RowSteps(const Steps& before_start, const Steps& steps);

    std::uint32_t count() const { return static_cast<std::uint32_t>(steps_.size()); }
    // Returns 0 if the step is not in the row.
    std::uint32_t number_of(const Step& step) const;
    // `number`: from 1 to count().
    const Step& step(std::uint32_t number) const { return *steps_.at(number - 1); }

  private:
    void add(const Steps& steps);

    std::vector<const Step*> steps_;
    std::map<const Step*, std::uint32_t> numbers_;
};

// The point of one play of a walk.
AccessPoint point_of(std::uint32_t walk, std::uint32_t cpu, const AccessNumber& access);

// A schedule of all producer steps of the row and these plays.
Schedule schedule_of(const RowSteps& row, std::uint64_t seed, std::span<const AccessPoint> plays);

// Returns one line about the mistake in a schedule for this row; empty: there is none.
std::string problem_of(const Schedule& schedule, const RowSteps& row);

// Describes a move of such a schedule in words.
std::string describe(const Move& move, const RowSteps& row);

// The chosen parts of a row.
class RowChoice {
  public:
    // nullptr: all parts. Both must outlive this object, and problem_of must accept the schedule.
    RowChoice(const RowSteps& row, const Schedule* schedule);

    bool is_whole() const { return schedule_ == nullptr; }
    bool plays(const Step& step) const;
    // The number of actions of the step; `as_written` is the number of the row.
    std::uint64_t count(const Step& step, std::uint64_t as_written) const;
    // The chosen accesses of a walk on this CPU. nullopt: each access in turn.
    std::optional<std::vector<AccessNumber>> accesses(const Step& walk, std::uint32_t cpu) const;
    const RowSteps& row() const { return row_; }

  private:
    const Move* move_of(const Step& step) const;

    const RowSteps& row_;
    const Schedule* schedule_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_ROW_SCHEDULE_H_
