// SPDX-License-Identifier: MIT
//
// Changes scripts at random, as scripts: the result is always valid, and usually still meaningful.
// For fuzzers, and for a search near a failed script.
#ifndef KMES_PROPS_SCRIPT_MUTATE_H_
#define KMES_PROPS_SCRIPT_MUTATE_H_

#include <cstddef>
#include <cstdint>

#include "props/script/drawing.h"
#include "props/script/script.h"

namespace kmes::props {

inline constexpr std::size_t kMutantBytes = 8192;

// The result depends only on the arguments, on every machine. Its text (print_script) has at most
// `most_bytes`, which is at least 64.
Script mutate(const Script& script, std::uint64_t seed, Profile profile = Profile::anything,
              std::size_t most_bytes = kMutantBytes);

// Combines parts of both.
Script cross(const Script& one, const Script& other, std::uint64_t seed,
             std::size_t most_bytes = kMutantBytes);

// The maximum number of bytes of all rings of a script. A fuzzer skips scripts that would only be
// slow.
std::uint64_t ring_bytes(const Script& script);

}  // namespace kmes::props

#endif  // KMES_PROPS_SCRIPT_MUTATE_H_
