// SPDX-License-Identifier: MIT
//
// A consumer whose only thread waits for one CPU checks the other CPUs after at most 100 ms
// (contract 2), however long nothing happened. Knows no case.
#ifndef KMES_CONFORMANCE_PLAY_LONG_WAITS_H_
#define KMES_CONFORMANCE_PLAY_LONG_WAITS_H_

#include <cstdint>

#include "conformance/play/steps.h"

namespace kmes::conformance {

// Lets a consumer with one thread run for this time, and blames a longer wait that omits a CPU.
Step idle_for(std::uint64_t milliseconds);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_LONG_WAITS_H_
