// SPDX-License-Identifier: MIT
//
// A schedule as names and figures, for failure files, and for lists without a description by the
// explorer. Knows no testee and no way to run.
#ifndef KMES_CONFORMANCE_FAILURE_SCHEDULE_TEXT_H_
#define KMES_CONFORMANCE_FAILURE_SCHEDULE_TEXT_H_

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "conformance/model/schedule.h"

namespace kmes::conformance {

// The name in Action: "swap_twice".
std::string_view action_name(Action action);
std::optional<Action> action_from_name(std::string_view name);
// All names, for a message: "nothing, emit, ...".
std::string action_names();

// In the order of PointKind.
inline constexpr std::array<std::string_view, 6> kPointKindNames = {
    "access", "wait", "sleep", "row_step", "row_access", "row_first_access"};

// "phase 2, CPU 0: before read 3 of the 8 bytes at 64: emit".
std::string figures_of(const Move& move);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_FAILURE_SCHEDULE_TEXT_H_
