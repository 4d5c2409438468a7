// SPDX-License-Identifier: MIT
//
// Scripts for rapidcheck: drawn by generate, shrunk by shrink_edits, shown as text with the command
// that plays them again.
#ifndef KMES_PROPS_SCRIPT_ARBITRARY_H_
#define KMES_PROPS_SCRIPT_ARBITRARY_H_

#include <rapidcheck.h>

#include <ostream>

#include "props/script/generate.h"
#include "props/script/save.h"
#include "props/script/shrink.h"

namespace kmes::props {

// rapidcheck calls this only for the final counterexample, after shrinking.
inline void showValue(const Script& script, std::ostream& out) {
    out << failed_script_text(script, "failed");
}

inline rc::Shrinkable<Script> shrinkable(Script script) {
    return rc::shrinkable::shrinkRecur(std::move(script), [](const Script& larger) {
        return rc::seq::map(rc::seq::fromContainer(shrink_edits(larger)),
                            [larger](const Edit& edit) { return apply(larger, edit); });
    });
}

// rapidcheck's size (usually 0 to 100) is the number of operations.
inline rc::Gen<Script> scripts(Profile profile) {
    return [profile](const rc::Random& random, int size) {
        rc::Random draws = random;
        const std::uint64_t seed = draws.next();
        return shrinkable(generate(seed, 1 + static_cast<std::size_t>(size), profile));
    };
}

}  // namespace kmes::props

#endif  // KMES_PROPS_SCRIPT_ARBITRARY_H_
