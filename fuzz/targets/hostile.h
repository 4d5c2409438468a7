// SPDX-License-Identifier: MIT
//
// The producer with a hostile consumer that writes to the metadata page between its steps (E13).
// The input is the text of a script, played with its `poke` lines and without them. Both times
// every property must hold.
#ifndef KMES_FUZZ_TARGETS_HOSTILE_H_
#define KMES_FUZZ_TARGETS_HOSTILE_H_

#include <cstddef>
#include <cstdint>

int kmes_fuzz_hostile(const std::uint8_t* data, std::size_t size);

#endif  // KMES_FUZZ_TARGETS_HOSTILE_H_
