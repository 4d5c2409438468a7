// SPDX-License-Identifier: MIT
//
// The choice of the form of the layout for a run. A process has one form from its start
// (model/layout.h), so for another form this program executes itself again.
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

// Whether --layout accepts this value.
bool is_layout_value(std::string_view value);

// Returns the form in --layout before --; null if there is no such option, or it names no form.
const Layout* layout_of_option(std::span<char* const> arguments);

// Returns the index of the word with the value of `--layout auto`, before --.
std::optional<std::size_t> automatic_layout_word(std::span<char* const> arguments);

// Returns what is wrong with the environment variable; empty: nothing.
std::string wrong_layout_variable();

// Executes this program again with the same arguments. Returns only on failure: one line.
std::string execute_in_layout(const Layout& layout, char* const* arguments);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_LAYOUT_CHOICE_H_
