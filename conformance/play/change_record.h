// SPDX-License-Identifier: MIT
//
// The G record of a change of buffers: the consumer writes it before it sleeps in the next buffer.
// Knows no case.
#ifndef KMES_CONFORMANCE_PLAY_CHANGE_RECORD_H_
#define KMES_CONFORMANCE_PLAY_CHANGE_RECORD_H_

#include <cstdint>

#include "conformance/play/steps.h"

namespace kmes::conformance {

// Replaces CPU 0's buffer `changes` times without an event. In the second half of the changes, a
// thread that writes records and does not read the ring is stopped before it writes. Blames a sleep
// in the next buffer without a G record (contract 3). Needs a second CPU and
// Setup::stops_at_writes.
Step changes_without_events(std::uint64_t changes);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_CHANGE_RECORD_H_
