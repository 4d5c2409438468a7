// SPDX-License-Identifier: MIT
//
// What the targets whose input becomes a script share: which scripts are worth playing, and what a
// failure of one looks like. Knows no format of an input.
#ifndef KMES_FUZZ_TARGETS_PLAYING_H_
#define KMES_FUZZ_TARGETS_PLAYING_H_

#include "props/script/script.h"

namespace kmes::fuzz {

// False for a script that would only be slow: rings of megabytes, thousands of operations.
bool is_quick(const props::Script& script);

// Plays it. Where a property is broken, says so, prints the script as `tools/kmes replay` reads it,
// and aborts.
void play_or_abort(const props::Script& script);

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_PLAYING_H_
