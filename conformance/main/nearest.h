// SPDX-License-Identifier: MIT
//
// Finds the names that are spelt most like a misspelt one. Knows no options, commands or cases.
#ifndef KMES_CONFORMANCE_MAIN_NEAREST_H_
#define KMES_CONFORMANCE_MAIN_NEAREST_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kmes::conformance {

// Returns at most `count` of `names`, best first. Names that contain `text` come first. Names that
// differ from it in more than half of their letters are left out. The result refers to `names`.
std::vector<std::string_view> nearest_names(const std::vector<std::string_view>& names,
                                            std::string_view text, std::size_t count);

// Returns "; did you mean NAME?" if at most a third of the text differs from NAME; else an empty
// string.
std::string did_you_mean(const std::vector<std::string_view>& names, std::string_view text);

// "a, b or c".
std::string list_names(const std::vector<std::string_view>& names);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_NEAREST_H_
