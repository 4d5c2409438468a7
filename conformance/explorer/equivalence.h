// SPDX-License-Identifier: MIT
//
// Moves that make the same play. Pure.
#ifndef KMES_CONFORMANCE_EXPLORER_EQUIVALENCE_H_
#define KMES_CONFORMANCE_EXPLORER_EQUIVALENCE_H_

#include <vector>

#include "conformance/play/player.h"

namespace kmes::conformance {

// Whether a play is the same when this action of the producer comes before the access and when it
// comes after it: neither touches what the other writes. `same_cpu`: the access is to a buffer of
// the CPU on which the action is.
bool commutes(Action action, bool same_cpu, const AccessPoint& access);

// The moves without those that make the same play as a later one, in their order. `trace`: of the
// play without moves, in which every point is found, with its gaps (TraceEntry).
//
// Why this loses nothing. Let the move M be at the access a, and N the same action at the next
// point b. The plays differ in the order of the action and of the accesses from a up to b. If the
// action commutes with each of them, then every load in between has the same value in both plays,
// so the testee, which is deterministic there, takes the same way to b. Memory is the same at b,
// too. Everything later is the same, and so is the verdict.
//
// Where the reason does not hold, the moves stay:
// - The testee has done something else between two accesses (a gap). It may have asked for a buffer
//   or written a record, and the judge compares those with the time of the action. Or reads were
//   unseen.
// - Another phase, and a wait: there a wake of the action counts.
// - Several threads with accesses or waits in the phase, or after phase 0: the action and its wake
//   change which of them runs.
// - Actions that depend on more than memory: reserve and write_over count accesses, overtake and
//   tear look at the last access to the data, hold and yield act on the thread.
std::vector<Move> without_equivalent(const std::vector<Move>& moves,
                                     const std::vector<TraceEntry>& trace, std::uint32_t cpus);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_EQUIVALENCE_H_
