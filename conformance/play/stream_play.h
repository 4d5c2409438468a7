// SPDX-License-Identifier: MIT
//
// Plays recorded events (--stream): the CPUs, types, sizes, payloads, order and number of events
// come from a file of kmesctl record. The oracle judges as in every other case.
#ifndef KMES_CONFORMANCE_PLAY_STREAM_PLAY_H_
#define KMES_CONFORMANCE_PLAY_STREAM_PLAY_H_

#include "conformance/model/case.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {

enum class Pace {
    every_event,  // no undelivered event is overwritten
    unpaced,
    sleeps,  // as every_event, and the consumer falls asleep after every few events
};

// A script that plays the file of the settings. A pass names the number of events.
struct StreamPlay {
    Pace pace;
    bool has_resize = false;  // doubles every capacity in the middle

    CaseOutcome operator()(Stage& stage) const;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_STREAM_PLAY_H_
