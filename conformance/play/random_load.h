// SPDX-License-Identifier: MIT
//
// Bursts of events of random sizes on random CPUs while the testee runs, without stops.
#ifndef KMES_CONFORMANCE_PLAY_RANDOM_LOAD_H_
#define KMES_CONFORMANCE_PLAY_RANDOM_LOAD_H_

#include "conformance/stage/stage.h"

namespace kmes::conformance {

// A step of a row (steps.h). Everything follows from the seed of the run.
struct RandomLoad {
    int bursts = 400;
    // Resizes after this many bursts: to twice the capacity and back in turn. 0: never.
    int resize_every = 0;

    void operator()(Stage& stage) const;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_RANDOM_LOAD_H_
