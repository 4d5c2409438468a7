// SPDX-License-Identifier: MIT
//
// Makes scripts smaller, so that rapidcheck, a fuzzer's crash and `tools/kmes replay --minimise`
// end in a script that a person can read. Knows no core: the caller says whether a script still
// fails.
#ifndef KMES_PROPS_SCRIPT_SHRINK_H_
#define KMES_PROPS_SCRIPT_SHRINK_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "props/script/script.h"

namespace kmes::props {

// One way to make a script smaller. It takes little memory, so a long script can have many.
struct Edit {
    // Removes operations [first, first + count), or replaces them by `replacement`. `partner`, a
    // later operation that ends what the first one opens, is removed with them.
    std::size_t first = 0;
    std::size_t count = 0;
    std::optional<std::size_t> partner;
    std::optional<Operation> replacement;
    // Or: consumer `from` becomes `to` in every line.
    struct Renumbering {
        std::uint64_t from;
        std::uint64_t to;
    };
    std::optional<Renumbering> renumbering;
};

// Returns all edits, the largest first: fewer operations, fewer readers and settings, no `start`;
// then types and values towards "t", their default and their minimum. Every edit makes the script
// smaller in one order, so chains of edits end.
std::vector<Edit> shrink_edits(const Script& script);
Script apply(const Script& script, const Edit& edit);

// Returns the results of all shrink_edits. For short scripts: each candidate is a whole copy.
std::vector<Script> shrink_candidates(const Script& script);

// Returns the smallest found script for which `still_fails`, which is called at most `budget`
// times. If `script` itself does not fail, returns it.
Script minimise(Script script, const std::function<bool(const Script&)>& still_fails,
                std::size_t budget);

}  // namespace kmes::props

#endif  // KMES_PROPS_SCRIPT_SHRINK_H_
