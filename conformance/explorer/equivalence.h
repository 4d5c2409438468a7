// SPDX-License-Identifier: MIT
//
// Finds moves that lead to the same play. The functions have no state.
#ifndef KMES_CONFORMANCE_EXPLORER_EQUIVALENCE_H_
#define KMES_CONFORMANCE_EXPLORER_EQUIVALENCE_H_

#include <cstdint>
#include <map>
#include <vector>

#include "conformance/play/player.h"

namespace kmes::conformance {

// Returns whether this action of the producer has the same effect before and after the access,
// because neither accesses memory that the other writes. `same_cpu`: the access is to a buffer of
// the action's CPU.
bool commutes(Action action, bool same_cpu, const AccessPoint& access);

struct Distinct {
    std::vector<Move> moves;  // in their order, without those whose play equals that of a later one
    std::map<Move, Move> same_as;  // from each omitted move to the equivalent one in `moves`
};

// `trace` is that of the play without moves: it has every point, and the gaps (TraceEntry).
//
// The search loses no play, for this reason. Let the move M be at the access a, and N the same
// action at the next point b. The plays differ in the order of the action and the accesses from a
// up to b. If the action commutes with each of them, then every load in between has the same value
// in both plays. The testee is deterministic there, so it reaches b by the same path. Memory is the
// same at b, too. Everything later is the same, and so is the verdict.
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
//
// A second move S. The state before b is the same after M as after N, so S after b has the same
// play with both. For S at an access p between a and b, or at b itself, that is not so: N comes
// after S there, and M before it. M commutes with the accesses from a up to p. So its play with S
// equals that of the same action at p, followed by S at p. Therefore a search for pairs that leaves
// M out plays N with each S after b, and both actions at one access for each p.
Distinct without_equivalent(const std::vector<Move>& moves, const std::vector<TraceEntry>& trace,
                            std::uint32_t cpus);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_EQUIVALENCE_H_
