// SPDX-License-Identifier: MIT
//
// A fuzzer's bytes as edits of a valid failure file. An edit changes a number, word or text, or
// removes, adds or moves a member or an item. The result is JSON, and nearly a failure file. Knows
// no property.
#ifndef KMES_FUZZ_TARGETS_FAILURE_EDITS_H_
#define KMES_FUZZ_TARGETS_FAILURE_EDITS_H_

#include <string>

#include "fuzz/fuzzed_bytes.h"

namespace kmes::fuzz {

// Returns the text of the file after the edits: at most 24, of five bytes or more each.
std::string edited_failure(FuzzedBytes* bytes);

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_FAILURE_EDITS_H_
