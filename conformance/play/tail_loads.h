// SPDX-License-Identifier: MIT
//
// Places at which a consumer may be overtaken, for ActAt (steps.h), in a row with one CPU: loads of
// a field, and the last access to a page. Knows no case.
#ifndef KMES_CONFORMANCE_PLAY_TAIL_LOADS_H_
#define KMES_CONFORMANCE_PLAY_TAIL_LOADS_H_

#include <cstdint>

#include "conformance/play/steps.h"

namespace kmes::conformance {

// After the load of tail_pos with this number, and before any other access.
PlayAt after_load_of_tail_pos();

// Before the load of generation with this number.
PlayAt before_load_of_generation();

// Before the last access to this page of the mapping. The first of two iterations, each with the
// next event at the beginning of the data region, counts the accesses.
PlayAt at_last_access_to(std::uint64_t page);

// Writes unpublished bytes over the event at the beginning of the region and its successors, up to
// `unread` bytes before the end of the ring. Up to half of the ring can be one event. More is a
// batch, whose last event takes the place of the overwritten one if it is not whole.
struct BeginOver {
    std::uint64_t unread;
    Written written;

    void operator()(Stage& stage) const;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_TAIL_LOADS_H_
