// SPDX-License-Identifier: MIT
//
// Whether a consumer with nothing to do uses the processor. For the monitor of that, and for the
// cases that measure it in several situations.
#ifndef KMES_CONFORMANCE_MONITORS_IDLE_SAMPLES_H_
#define KMES_CONFORMANCE_MONITORS_IDLE_SAMPLES_H_

#include <string>

namespace kmes::conformance {

class Stage;

// Compares all threads of the consumer with a thread that never rests, and with their own sleep. A
// spinner uses as much as that thread, or far more than it sleeps. A wait of a millisecond in an
// interpreter, traced, uses a tenth of a processor. Two samples that are quiet by both measures are
// enough. All samples together judge a spinner that hardly got a processor in one of them.
// Returns what was observed and expected; empty: the consumer is idle.
std::string find_idle_fault(Stage& stage);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MONITORS_IDLE_SAMPLES_H_
