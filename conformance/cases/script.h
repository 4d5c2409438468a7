// SPDX-License-Identifier: MIT
//
// A case is a row of a table: a Case whose last column plays it. The plainest form of that column
// is Script{...}, a list of steps. Cases of other forms have a structure of their own columns
// there, with an operator() that plays them.
#ifndef KMES_CONFORMANCE_CASES_SCRIPT_H_
#define KMES_CONFORMANCE_CASES_SCRIPT_H_

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/model/case.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {

// The columns that several rows have in common: each row is a call with the others.
struct Common {
    Level level;
    std::string_view clause;
    std::string_view description;
    std::string_view expectation;

    Case operator()(std::string_view id, std::string_view title, CaseFunction run) const {
        return {id, level, clause, title, description, expectation, std::move(run)};
    }
};

// A step. A lambda is one, too.
using ScriptStep = std::function<void(Stage&)>;

// Plays the steps in this order, and finishes: the end event on every CPU, the exit, the verdict.
struct Script {
    std::vector<ScriptStep> steps;
    bool shortened_waits = false;  // see Stage::ShortenedWaits

    CaseOutcome operator()(Stage& stage) const;
};

// For tables: `using namespace script`.
namespace script {

// -- The rings, in the place of those of the command line: the first step, if any --
ScriptStep cpus(std::uint32_t count, std::uint64_t capacity_bytes = 0);  // 0: of the command line
ScriptStep rings(std::function<void(RingsSetup&)> change);

// -- The consumer: start(), and the waits of Stage --
inline constexpr void (Stage::*start)() = &Stage::start;
inline constexpr void (Stage::*mapped)() = &Stage::wait_mapped;
inline constexpr void (Stage::*delivered)() = &Stage::wait_delivered;
inline constexpr void (Stage::*asleep)() = &Stage::wait_asleep;
inline constexpr void (Stage::*freeze)() = &Stage::freeze;
inline constexpr void (Stage::*thaw)() = &Stage::thaw;

// -- The producer --
// `count` events of `event_bytes` bytes on one CPU, or on each CPU in turn.
ScriptStep emit(std::uint32_t cpu, std::uint64_t count, std::uint64_t event_bytes);
ScriptStep emit_all(std::uint64_t count, std::uint64_t event_bytes);
// Replaces every buffer by one of `factor` times the capacity.
ScriptStep resize(double factor = 1);
// Ends the boot phase of every CPU.
void hand_over(Stage& stage);

// -- Several steps --
ScriptStep times(int count, std::vector<ScriptStep> steps);
ScriptStep on_each_cpu(std::function<void(Stage& stage, std::uint32_t cpu)> act);

}  // namespace script

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_CASES_SCRIPT_H_
