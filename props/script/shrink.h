// SPDX-License-Identifier: MIT
//
// Makes scripts smaller: what rapidcheck, a fuzzer's crash and `tools/kmes replay --minimise` end
// in is a script that a person reads. Knows no core; whether a script still fails is asked of the
// caller.
#ifndef KMES_PROPS_SCRIPT_SHRINK_H_
#define KMES_PROPS_SCRIPT_SHRINK_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "props/script/script.h"

namespace kmes::props {

// One way to make a script smaller. It is small itself, so that a long script can have many.
struct Edit {
    // Operations [first, first + count) go, or are replaced by `replacement`; `partner`, one that
    // stands behind them (the end of what the first one opens), goes with them.
    std::size_t first = 0;
    std::size_t count = 0;
    std::optional<std::size_t> partner;
    std::optional<Operation> replacement;
    // Or: consumer `from` is called `to` in every line.
    struct Renumbering {
        std::uint64_t from;
        std::uint64_t to;
    };
    std::optional<Renumbering> renumbering;
};

// What may be tried, the most aggressive first: fewer operations, fewer readers and settings, no
// `start`, then types and values towards "t", their standard, their minimum. However edits are
// chained, they end: each makes the script smaller by one order.
std::vector<Edit> shrink_edits(const Script& script);
Script apply(const Script& script, const Edit& edit);

// All of shrink_edits, applied. For short scripts: each candidate is a whole copy.
std::vector<Script> shrink_candidates(const Script& script);

// The smallest script found for which `still_fails`, which is asked at most `budget` times.
// `script` itself fails, or the answer is `script`.
Script minimise(Script script, const std::function<bool(const Script&)>& still_fails,
                std::size_t budget);

}  // namespace kmes::props

#endif  // KMES_PROPS_SCRIPT_SHRINK_H_
