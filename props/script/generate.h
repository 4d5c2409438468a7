// SPDX-License-Identifier: MIT
//
// Random scripts, the same for the same seed on every machine.
#ifndef KMES_PROPS_SCRIPT_GENERATE_H_
#define KMES_PROPS_SCRIPT_GENERATE_H_

#include <cstdint>

#include "props/script/drawing.h"
#include "props/script/script.h"

namespace kmes::props {

// Returns a script of `size` operations or a few more, plus settings and readers.
Script generate(std::uint64_t seed, std::size_t size, Profile profile);

}  // namespace kmes::props

#endif  // KMES_PROPS_SCRIPT_GENERATE_H_
