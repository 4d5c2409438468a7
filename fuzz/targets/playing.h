// SPDX-License-Identifier: MIT
//
// Shared by the targets with scripts: the choice of scripts that are worth playing, and the report
// of a failure. Knows no format of an input.
#ifndef KMES_FUZZ_TARGETS_PLAYING_H_
#define KMES_FUZZ_TARGETS_PLAYING_H_

#include "props/script/script.h"

namespace kmes::fuzz {

// Returns false for a script that would only be slow: rings of megabytes, thousands of operations.
bool is_quick(const props::Script& script);

// Plays a script. If a property is broken, says so, prints the script for `tools/kmes replay`, and
// aborts.
void play_or_abort(const props::Script& script);

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_PLAYING_H_
