// SPDX-License-Identifier: MIT
//
// Derives from the trace of one play which schedules to play: which accesses are points of their
// own, and which actions make sense there. Pure.
#ifndef KMES_CONFORMANCE_EXPLORER_POINTS_H_
#define KMES_CONFORMANCE_EXPLORER_POINTS_H_

#include <cstdint>
#include <random>
#include <vector>

#include "conformance/play/player.h"

namespace kmes::conformance {

// Which accesses are points. `thinned`: of an access that repeats at one place (a spin), the first
// three and the last two; of long runs of accesses to the data, some. `all_data`: every access to
// the data, but spins as before. `all`: every access.
enum class Density { thinned, all_data, all };

// Returns the points of a trace in their order.
std::vector<AccessPoint> points_of(const std::vector<TraceEntry>& trace, std::uint32_t first_phase,
                                   Density density);

// Returns every move at every point, those most likely to find a fault first. At an access to the
// data only actions that overwrite can make a difference; `everywhere` includes the others.
std::vector<Move> moves_at(const std::vector<AccessPoint>& points, const Scenario& scenario,
                           bool has_several_threads, bool everywhere = false);

// Returns a random move at one of these points.
Move random_move(const std::vector<AccessPoint>& points, std::uint32_t cpus,
                 bool has_several_threads, std::mt19937_64& random);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_POINTS_H_
