// SPDX-License-Identifier: MIT
//
// A producer exactly as fast as the consumer: tail_pos moves just past the event that is being
// read. The next event is whole. Knows no case.
#ifndef KMES_CONFORMANCE_PLAY_ONE_BY_ONE_H_
#define KMES_CONFORMANCE_PLAY_ONE_BY_ONE_H_

#include <cstdint>

#include "conformance/play/steps.h"

namespace kmes::conformance {

// Every event, or the second one of each few.
enum class Torn { each, second };

// At the first access to the event, at the second, or when the whole header has been read.
enum class TornWhen { first, second, after_the_header };

struct OneByOne {
    Torn torn = Torn::each;
    TornWhen when = TornWhen::first;
    std::uint64_t times = 1;
    std::uint64_t of_each = 3;  // Torn::second: the second one of this many
};

// Plays the steps on CPU 0. Meanwhile, overwrites exactly the event that the consumer reads, so
// many times.
Step torn_one_by_one(const OneByOne& series, const Steps& steps);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_ONE_BY_ONE_H_
