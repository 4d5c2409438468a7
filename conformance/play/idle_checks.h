// SPDX-License-Identifier: MIT
//
// Checks of a testee that has nothing to do, as steps of a row (steps.h): its processor time, and
// the delay after a wake. Times are compared with those of the same run, and several samples count.
#ifndef KMES_CONFORMANCE_PLAY_IDLE_CHECKS_H_
#define KMES_CONFORMANCE_PLAY_IDLE_CHECKS_H_

#include "conformance/stage/stage.h"

namespace kmes::conformance {

// Compares the processor time of the testee with that of a thread that never rests, and with its
// own sleep (5.1.8.2).
struct CheckIdleTime {
    void operator()(Stage& stage) const;
};

// Compares the time from an event to its record with a wait of 100 ms (contract, waiting), on each
// CPU in turn. At least one sample of a CPU must need at most `most_waits` such waits (5.1.8.2-6).
// Stops at the first CPU that is too slow.
struct CheckDelay {
    int samples;
    double most_waits;

    void operator()(Stage& stage) const;
};

// Publishes an event for the sleeping consumer of CPU 0, and counts it in futex_counter only after
// the consumer has delivered it. The consumer has then loaded the old value, so the kernel refuses
// its wait (EAGAIN) with nothing new in the ring.
struct CountEventLate {
    void operator()(Stage& stage) const;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_IDLE_CHECKS_H_
