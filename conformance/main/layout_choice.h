// SPDX-License-Identifier: MIT
//
// The form of the layout that a run is asked for. A process has one from its start
// (model/layout.h), so another one takes another execution of this program.
#ifndef KMES_CONFORMANCE_MAIN_LAYOUT_CHOICE_H_
#define KMES_CONFORMANCE_MAIN_LAYOUT_CHOICE_H_

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "conformance/model/layout.h"

namespace kmes::conformance {

inline constexpr const char* kRightLayout = "auto, A, B, C or D (or 1, 0.20, 0.22 or stream)";
inline constexpr const char* kRightForm = "A, B, C or D (or 1, 0.20, 0.22 or stream)";
inline constexpr std::string_view kAutomaticLayout = "auto";

// Whether --layout takes this value.
bool is_layout_value(std::string_view value);

// The form of --layout before --; null: there is none, or it names no form.
const Layout* layout_of_option(std::span<char* const> arguments);

// The index of the word that has the value of `--layout auto`, before --.
std::optional<std::size_t> automatic_layout_word(std::span<char* const> arguments);

// What is wrong with the variable of the environment; empty: nothing.
std::string wrong_layout_variable();

// Executes this program again with the same arguments. Returns only if that fails: one line.
std::string execute_in_layout(const Layout& layout, char* const* arguments);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_LAYOUT_CHOICE_H_
