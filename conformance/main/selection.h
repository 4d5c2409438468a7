// SPDX-License-Identifier: MIT
//
// Selects cases by patterns and levels, and suggests the nearest names for a misspelt one. Runs
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
    std::string error;               // one line; if not empty, bad usage
};

// --filter and --without.
struct CasePatterns {
    std::vector<std::string> only;  // none: all cases
    std::vector<std::string> without;
};

// The option that includes such cases. Empty: none, they are always included.
std::string_view asks_for(Demand demand);

// Selects the cases up to `level` whose id or former id matches a pattern of `only` and none of
// `without`. `settings`, if not null, further restricts them (is_demanded). It is an error if a
// pattern matches no case or excludes none, or if no case is left.
Selection select_cases(const std::vector<Case>& cases, const CasePatterns& patterns, Level level,
                       const StageSettings* settings);

// Shuffles the cases. The order depends only on `seed`, on every machine.
void shuffle_cases(std::vector<const Case*>& cases, std::uint64_t seed);

// True if `name` is the clause or a part of it: 5.1.8.1-2 is a part of 5.1.8.1 and of 5.1.8.
bool is_of_clause(std::string_view name, std::string_view clause);

// Returns the pattern of the ids of a clause and its parts: "E3/*", "5.1.8.1*". Empty: there is no
// such id.
std::string pattern_of_clause(const std::vector<Case>& cases, std::string_view clause);

// Returns at most `count` ids that are spelt most like `id`, best first.
std::vector<std::string_view> nearest_ids(const std::vector<Case>& cases, std::string_view id,
                                          std::size_t count = 3);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SELECTION_H_
