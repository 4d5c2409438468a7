// SPDX-License-Identifier: MIT
//
// Changes scripts at random, as scripts: what comes out can always be read, and is mostly still
// about something. For fuzzers, and for whoever looks around a script that failed.
#ifndef KMES_PROPS_SCRIPT_MUTATE_H_
#define KMES_PROPS_SCRIPT_MUTATE_H_

#include <cstddef>
#include <cstdint>

#include "props/script/drawing.h"
#include "props/script/script.h"

namespace kmes::props {

inline constexpr std::size_t kMutantBytes = 8192;

// The same for the same arguments on every machine. The text of the result (print_script) has at
// most `most_bytes`, which is at least 64.
Script mutate(const Script& script, std::uint64_t seed, Profile profile = Profile::anything,
              std::size_t most_bytes = kMutantBytes);

// Parts of both.
Script cross(const Script& one, const Script& other, std::uint64_t seed,
             std::size_t most_bytes = kMutantBytes);

// Bytes of all rings that a script asks for, at most: a fuzzer passes over what would only be slow.
std::uint64_t ring_bytes(const Script& script);

}  // namespace kmes::props

#endif  // KMES_PROPS_SCRIPT_MUTATE_H_
