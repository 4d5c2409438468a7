// SPDX-License-Identifier: MIT
//
// The names that are written most like a misspelt one. Knows no options, commands or cases.
#ifndef KMES_CONFORMANCE_MAIN_NEAREST_H_
#define KMES_CONFORMANCE_MAIN_NEAREST_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kmes::conformance {

// At most `count` of `names`, best first. A name that contains `text` comes before all others. The
// views point into `names`.
std::vector<std::string_view> nearest_names(const std::vector<std::string_view>& names,
                                            std::string_view text, std::size_t count);

// "; did you mean NAME?", for a text that is nearly NAME: at most a third of it is another. Empty
// where no name is so near.
std::string did_you_mean(const std::vector<std::string_view>& names, std::string_view text);

// "a, b or c".
std::string list_names(const std::vector<std::string_view>& names);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_NEAREST_H_
