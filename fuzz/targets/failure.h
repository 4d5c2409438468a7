// SPDX-License-Identifier: MIT
//
// The failure file (docs/failure-files.md) from an untrusted source, as `replay`, `judge` and
// `shrink` read it.
//
// The input is the file. An input that begins with the byte 1 is a list of edits of a valid file
// (failure_edits.h), because random bytes rarely pass a strict reader.
//
// A refused file has one line of error. An accepted file is written and read back as equal. The
// oracle judges it and the trace is drawn, each within its bounds. The search for a smaller
// schedule ends within its runs, and its result is no larger.
#ifndef KMES_FUZZ_TARGETS_FAILURE_H_
#define KMES_FUZZ_TARGETS_FAILURE_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_failure(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_FAILURE_H_
