// SPDX-License-Identifier: MIT
//
// Measures whether a consumer uses the processor while it has nothing to do. For the idle monitor,
// and for the cases that measure it in several situations.
#ifndef KMES_CONFORMANCE_MONITORS_IDLE_SAMPLES_H_
#define KMES_CONFORMANCE_MONITORS_IDLE_SAMPLES_H_

#include <string>

namespace kmes::conformance {

class Stage;

// Compares all threads of the consumer with a thread that never rests, and with their own sleep. A
// spinner uses as much processor time as that thread, or far more than it sleeps. (A traced
// interpreter that wakes every millisecond uses a tenth of a processor.) Two samples that are quiet
// by both measures are enough. If a spinner hardly got a processor in one sample, all samples
// together decide. A thread that never slept on a ring may work beside sleeping readers, as a
// compiler of a language does, for 4 s of processor time; it is a spinner if it does not rest then.
// Returns the observation and the expectation; empty: the consumer is idle, or has
// ended, which the stage judges.
std::string find_idle_fault(Stage& stage);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MONITORS_IDLE_SAMPLES_H_
