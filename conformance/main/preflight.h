// SPDX-License-Identifier: MIT
//
// A check before the first case: can this adapter work at all? Plays the first events of the smoke
// stream.
#ifndef KMES_CONFORMANCE_MAIN_PREFLIGHT_H_
#define KMES_CONFORMANCE_MAIN_PREFLIGHT_H_

#include "conformance/main/program.h"
#include "conformance/main/smoke.h"

namespace kmes::conformance {

// Reports a mistake only if no case can pass: the program cannot be started, or no event emitted
// after its attach has a correct record. The cases report all other mistakes.
Preflight run_preflight(const SmokePlayer& player, const StageSettings& settings);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_PREFLIGHT_H_
