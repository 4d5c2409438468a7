// SPDX-License-Identifier: MIT
//
// Blames a consumer whose resources grow from count to count (5.1.8.1-5, 5.1.8.3-6). Knows no case.
#ifndef KMES_CONFORMANCE_PLAY_GROWTH_H_
#define KMES_CONFORMANCE_PLAY_GROWTH_H_

#include <cstdint>

#include "conformance/play/steps.h"

namespace kmes::conformance {

// Memory is counted only for large buffers. See figures_of.
enum class Resources { files_and_mappings, memory_too };

// Plays a change of buffers again and again, and counts the consumer's resources four times,
// `changes` changes apart. Blames a count that grows in each interval.
Step without_growth(std::uint64_t changes, Resources counted, const Steps& change);

// Plays the copy of an event that is overwritten again and again, and counts the consumer's private
// memory five times, `reads` copies apart. Blames growth in each interval.
Step without_growth_of_memory(std::uint64_t reads, std::uint64_t event_bytes, const Steps& read);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_GROWTH_H_
