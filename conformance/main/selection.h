// SPDX-License-Identifier: MIT
//
// Which cases are meant: patterns, levels, and the nearest names where one is misspelt. Runs
// nothing.
#ifndef KMES_CONFORMANCE_MAIN_SELECTION_H_
#define KMES_CONFORMANCE_MAIN_SELECTION_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/model/case.h"
#include "conformance/model/settings.h"

namespace kmes::conformance {

struct Selection {
    std::vector<const Case*> cases;  // in the order of the list
    std::string error;               // one line; not empty: bad usage
};

// --filter and --without.
struct CasePatterns {
    std::vector<std::string> only;  // none: all cases
    std::vector<std::string> without;
};

// The cases of a level up to `level` whose id matches any pattern of `only` and none of `without`,
// and that `settings` ask for (nullptr: all of them). A pattern that matches no case, or
// would leave out none that is meant, is an error; so is it where no case is left.
Selection select_cases(const std::vector<Case>& cases, const CasePatterns& patterns, Level level,
                       const StageSettings* settings);

// Into an order that follows from `seed`, on every machine the same.
void shuffle_cases(std::vector<const Case*>& cases, std::uint64_t seed);

// nullptr: there is no such case.
const Case* find_case(const std::vector<Case>& cases, std::string_view id);

// The ids that are written most like `id`, best first, at most `count`.
std::vector<std::string_view> nearest_ids(const std::vector<Case>& cases, std::string_view id,
                                          std::size_t count = 3);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SELECTION_H_
