// SPDX-License-Identifier: MIT
//
// Random plays until a time limit. The seed determines each play: the CPUs, the capacity,
// positions, sizes, the producer's actions, and the accesses before which they happen.
#ifndef KMES_CONFORMANCE_EXPLORER_SOAK_H_
#define KMES_CONFORMANCE_EXPLORER_SOAK_H_

#include "conformance/model/case.h"
#include "conformance/model/settings.h"

namespace kmes::conformance {

// Plays fresh testees until settings.soak_seconds have passed or one fails. A play depends on
// settings.seed, its number and the accesses of the testee. It does not control how threads race
// between accesses. The parts of a soak (settings.part) share the numbers.
CaseOutcome soak(const Case& the_case, const StageSettings& settings);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_SOAK_H_
