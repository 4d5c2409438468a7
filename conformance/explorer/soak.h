// SPDX-License-Identifier: MIT
//
// Random everything, for as long as asked: CPUs, capacity, positions, sizes, what the producer does
// and when, which accesses it comes between. One seed, one verdict.
#ifndef KMES_CONFORMANCE_EXPLORER_SOAK_H_
#define KMES_CONFORMANCE_EXPLORER_SOAK_H_

#include "conformance/model/case.h"
#include "conformance/model/settings.h"

namespace kmes::conformance {

// Plays fresh testees until settings.soak_seconds are over or one fails. What each play is follows
// from settings.seed, its number and the accesses of the testee; how threads race between those
// does not.
CaseOutcome soak(const Case& the_case, const StageSettings& settings);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_SOAK_H_
