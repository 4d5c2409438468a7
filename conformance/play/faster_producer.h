// SPDX-License-Identifier: MIT
//
// A producer that is faster than the consumer many times in a row, as steps of a row with one CPU
// (steps.h). Knows no case.
#ifndef KMES_CONFORMANCE_PLAY_FASTER_PRODUCER_H_
#define KMES_CONFORMANCE_PLAY_FASTER_PRODUCER_H_

#include <cstdint>

#include "conformance/stage/stage.h"

namespace kmes::conformance {

// Overwrites everything unread, so many times: a few times between the load of tail_pos and the
// read, then between the read and the next load of tail_pos. Ends the case as stop_unseen does if
// the consumer never comes to read.
struct OvertakeAgain {
    int times;

    void operator()(Stage& stage) const;
};

// Overwrites everything with events of `event_bytes` in the middle of an event, then in the middle
// of the next one that the consumer reads, and so on.
struct TearAgain {
    int times;
    std::uint64_t event_bytes;

    void operator()(Stage& stage) const;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_FASTER_PRODUCER_H_
