// SPDX-License-Identifier: MIT
//
// See schedule_text.h.
#include "conformance/failure/schedule_text.h"

#include <array>

namespace kmes::conformance {
namespace {

// In the order of Action.
constexpr std::array<std::string_view, 20> kActionNames = {
    "nothing", "emit", "burst",  "batch",    "drop",       "lap_part", "lap",
    "laps",    "grow", "shrink", "swap",     "swap_twice", "nudge",    "wake",
    "reserve", "tear", "hold",   "overtake", "write_over", "yield",
};
static_assert(static_cast<std::size_t>(Action::yield) + 1 == kActionNames.size());

}  // namespace

std::string_view action_name(Action action) {
    const auto index = static_cast<std::size_t>(action);
    return index < kActionNames.size() ? kActionNames[index] : "";
}

namespace {

static_assert(static_cast<std::size_t>(PointKind::row_first_access) + 1 == kPointKindNames.size());

std::string place_in_figures(const AccessPoint& point) {
    if (point.kind == PointKind::sleep) return "asleep";
    if (point.kind == PointKind::wait) return "before wait " + std::to_string(point.occurrence);
    const std::string split = "after " + std::to_string(point.split_bytes) + " bytes of ";
    return (point.split_bytes > 0 ? split : "before ") + (point.is_write ? "write " : "read ") +
           std::to_string(point.occurrence) + " of the " + std::to_string(point.size_bytes) +
           " bytes at " + std::to_string(point.offset_bytes);
}

std::string row_figures_of(const Move& move) {
    const AccessPoint& point = move.point;
    std::string text = "step " + std::to_string(point.phase);
    if (point.kind != PointKind::row_step)
        text += ", CPU " + std::to_string(point.cpu) + ": before access " +
                std::to_string(point.occurrence);
    if (move.parameter != 0) text += " (parameter " + std::to_string(move.parameter) + ")";
    return text;
}

}  // namespace

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
    if (is_of_a_row(point.kind)) return row_figures_of(move);
    std::string text = "phase " + std::to_string(point.phase) + ", CPU " +
                       std::to_string(point.cpu) + ": " + place_in_figures(point) + ": " +
                       std::string(action_name(move.action));
    if (move.further != 0) text += ", on the CPU " + std::to_string(move.further) + " further";
    if (move.parameter != 0) text += " (parameter " + std::to_string(move.parameter) + ")";
    if (move.written != Written::whole)
        text += ", written: " + std::string(kWrittenNames[static_cast<std::size_t>(move.written)]);
    return text;
}

}  // namespace kmes::conformance
