// SPDX-License-Identifier: MIT
//
// CPU 0 is busy while something happens to CPU 1 (5.1.8.3, contract 2): CPU 0 has an event whenever
// its consumer is about to wait for one. Knows no case.
#ifndef KMES_CONFORMANCE_PLAY_BUSY_CPU_H_
#define KMES_CONFORMANCE_PLAY_BUSY_CPU_H_

#include <string_view>

#include "conformance/play/steps.h"

namespace kmes::conformance {

// Whether CPU 0 gets one more event at each load from CPU 1's page, so that no iteration over both
// CPUs finds nothing.
enum class SentAtVisits { no, yes };

// For ActAt: after an event of busy CPU 0, which is unread then. The actions give CPU 1 an event,
// which `event` names in a message. Blames the clause if the consumer does not deliver that event
// while CPU 0 is busy. If the consumer does not wait on CPU 0, the actions are played at the end.
PlayAt beside_a_busy_cpu(SentAtVisits at_visits, std::string_view clause, std::string_view event);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_BUSY_CPU_H_
