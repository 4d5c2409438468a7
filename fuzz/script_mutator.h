// SPDX-License-Identifier: MIT
//
// Mutates an input that is the text of a script, for each engine. The result is again the text of a
// script (props/script/mutate.h).
#ifndef KMES_FUZZ_SCRIPT_MUTATOR_H_
#define KMES_FUZZ_SCRIPT_MUTATOR_H_

#include <cstddef>
#include <cstdint>

namespace kmes::fuzz {

// Changes the input in place. Replaces text that is not a script by a random one. Returns the new
// size.
std::size_t mutate_script(std::uint8_t* data, std::size_t size, std::size_t most_bytes,
                          std::uint64_t seed);

// Writes parts of both to `out`. Returns the size, or 0 if one of them is not a script.
std::size_t cross_scripts(const std::uint8_t* one, std::size_t one_size, const std::uint8_t* other,
                          std::size_t other_size, std::uint8_t* out, std::size_t most_bytes,
                          std::uint64_t seed);

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_SCRIPT_MUTATOR_H_
