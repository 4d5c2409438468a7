// SPDX-License-Identifier: MIT
//
// From the trace of one play to the schedules that are worth playing: which accesses are points of
// their own, which actions make sense there. Pure.
#ifndef KMES_CONFORMANCE_EXPLORER_POINTS_H_
#define KMES_CONFORMANCE_EXPLORER_POINTS_H_

#include <cstdint>
#include <random>
#include <vector>

#include "conformance/play/player.h"

namespace kmes::conformance {

// Which accesses are points. One that comes again and again at one place (a spin) is one the first
// three times and the last two, and long runs of accesses to the data are thinned out; or only the
// former; or every access is a point.
enum class Density { thinned, all_data, all };

// The points of a trace in the order in which they came.
std::vector<AccessPoint> points_of(const std::vector<TraceEntry>& trace, std::uint32_t first_phase,
                                   Density density);

// Every move at every point: the most telling actions at all points first. At an access to the data
// those that overwrite, which is what can be told apart there; `everywhere`: all.
std::vector<Move> moves_at(const std::vector<AccessPoint>& points, const Scenario& scenario,
                           bool has_several_threads, bool everywhere = false);

// A move at random, at one of these points.
Move random_move(const std::vector<AccessPoint>& points, std::uint32_t cpus,
                 bool has_several_threads, std::mt19937_64& random);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_POINTS_H_
