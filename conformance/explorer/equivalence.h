// SPDX-License-Identifier: MIT
//
// Which moves lead to the same play. Pure.
#ifndef KMES_CONFORMANCE_EXPLORER_EQUIVALENCE_H_
#define KMES_CONFORMANCE_EXPLORER_EQUIVALENCE_H_

#include <vector>

#include "conformance/play/player.h"

namespace kmes::conformance {

// Whether this action of the producer can come before or after the access with the same effect:
// neither touches what the other writes. `same_cpu`: the access is to a buffer of the action's CPU.
bool commutes(Action action, bool same_cpu, const AccessPoint& access);

// Returns the moves, in their order, without those whose play equals that of a later one. `trace`
// is that of the play without moves: it has every point, and the gaps (TraceEntry).
//
// Why this loses nothing. Let the move M be at the access a, and N the same action at the next
// point b. The plays differ in the order of the action and the accesses from a up to b. If the
// action commutes with each of them, then every load in between has the same value in both plays.
// The testee is deterministic there, so it reaches b by the same path. Memory is the same at b,
// too. Everything later is the same, and so is the verdict.
//
// Where this argument does not hold, the moves stay:
// - The testee has done something else between two accesses (a gap). It may have attached or
//   written a record, and the judge compares the time of both with that of the action. Or some
//   reads were not seen.
// - The points are in different phases, or one of them is a wait: a wake of the action matters
//   there.
// - Several threads have accesses or waits in the phase, or after phase 0: the action and
//   its wake change which thread runs.
// - The action depends on more than memory. reserve and write_over count accesses, overtake and
//   tear use the last access to the data, hold and yield act on the thread.
std::vector<Move> without_equivalent(const std::vector<Move>& moves,
                                     const std::vector<TraceEntry>& trace, std::uint32_t cpus);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_EQUIVALENCE_H_
