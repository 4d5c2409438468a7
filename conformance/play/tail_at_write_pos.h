// SPDX-License-Identifier: MIT
//
// tail_pos at write_pos while an event is not published (E20), as a step of a row (steps.h). Knows
// no case.
#ifndef KMES_CONFORMANCE_PLAY_TAIL_AT_WRITE_POS_H_
#define KMES_CONFORMANCE_PLAY_TAIL_AT_WRITE_POS_H_

#include <cstdint>

#include "conformance/stage/stage.h"

namespace kmes::conformance {

// Shrinks the buffers to this capacity, so that an event of 5/8 of it is left. An event of half of
// it reaches write_pos before an access to the new buffer of CPU 0. Repeats that for each access
// and each state of the unpublished event. Needs buffers of four times the capacity.
struct ReachWritePos {
    std::uint64_t capacity_bytes;

    void operator()(Stage& stage) const;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_TAIL_AT_WRITE_POS_H_
