// SPDX-License-Identifier: MIT
//
// A fuzzer's bytes as edits of a sound failure file: another number, word or text, a member or an
// item less, more, or in another place. What comes out is JSON, and nearly a failure file. Knows no
// property.
#ifndef KMES_FUZZ_TARGETS_FAILURE_EDITS_H_
#define KMES_FUZZ_TARGETS_FAILURE_EDITS_H_

#include <string>

#include "fuzz/fuzzed_bytes.h"

namespace kmes::fuzz {

// The text of the file after the edits: five bytes or more each, at most 24 of them.
std::string edited_failure(FuzzedBytes* bytes);

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_FAILURE_EDITS_H_
