// SPDX-License-Identifier: MIT
//
// Before the first case: can this adapter work at all? Plays the first events of smoke's stream.
#ifndef KMES_CONFORMANCE_MAIN_PREFLIGHT_H_
#define KMES_CONFORMANCE_MAIN_PREFLIGHT_H_

#include "conformance/main/program.h"
#include "conformance/main/smoke.h"

namespace kmes::conformance {

// Finds a mistake only where no case can pass: the program cannot be started, or not one event that
// came after its attach has a correct record. Whatever else is wrong is for the cases to say.
Preflight run_preflight(const SmokePlayer& player, const StageSettings& settings);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_PREFLIGHT_H_
