// SPDX-License-Identifier: MIT
//
// A small event that is overwritten before an access to it, as steps of a row (steps.h). Knows no
// case.
#ifndef KMES_CONFORMANCE_PLAY_LAPPED_EVENT_H_
#define KMES_CONFORMANCE_PLAY_LAPPED_EVENT_H_

#include "conformance/stage/stage.h"

namespace kmes::conformance {

// Overwrites an event of CPU 0 before each access to it in turn. A consumer that reads the event
// after its last load of tail_pos delivers the later bytes.
struct LapAtEachAccess {
    void operator()(Stage& stage) const;
};

// As LapAtEachAccess with end events, one for each CPU, at the last accesses. The consumer
// decides by its copy whether the event is the end: it ends the CPU, or has noticed the overwrite.
struct LapEndAtLastAccesses {
    void operator()(Stage& stage) const;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_LAPPED_EVENT_H_
