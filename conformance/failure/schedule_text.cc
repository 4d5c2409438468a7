// SPDX-License-Identifier: MIT
//
// See schedule_text.h.
#include "conformance/failure/schedule_text.h"

#include <array>

namespace kmes::conformance {
namespace {

// In the order of Action.
constexpr std::array<std::string_view, 19> kActionNames = {
    "nothing", "emit", "burst",  "batch",    "drop",       "lap_part", "lap",
    "laps",    "grow", "shrink", "swap",     "swap_twice", "nudge",    "wake",
    "reserve", "tear", "hold",   "overtake", "write_over",
};
static_assert(static_cast<std::size_t>(Action::write_over) + 1 == kActionNames.size());

}  // namespace

std::string_view action_name(Action action) {
    const auto index = static_cast<std::size_t>(action);
    return index < kActionNames.size() ? kActionNames[index] : "";
}

std::optional<Action> action_from_name(std::string_view name) {
    for (std::size_t i = 0; i < kActionNames.size(); ++i) {
        if (kActionNames[i] == name) return static_cast<Action>(i);
    }
    return std::nullopt;
}

std::string action_names() {
    std::string all;
    for (const std::string_view name : kActionNames) {
        if (!all.empty()) all += ", ";
        all += name;
    }
    return all;
}

std::string figures_of(const Move& move) {
    const AccessPoint& point = move.point;
    std::string text =
        "phase " + std::to_string(point.phase) + ", CPU " + std::to_string(point.cpu) + ": ";
    if (point.split_bytes > 0) text += "behind " + std::to_string(point.split_bytes) + " bytes of ";
    if (point.split_bytes == 0) text += "before ";
    text += std::string(point.is_write ? "write " : "read ") + std::to_string(point.occurrence) +
            " of the " + std::to_string(point.size_bytes) + " bytes at " +
            std::to_string(point.offset_bytes) + ": " + std::string(action_name(move.action));
    if (move.parameter != 0) text += " (parameter " + std::to_string(move.parameter) + ")";
    return text;
}

}  // namespace kmes::conformance
