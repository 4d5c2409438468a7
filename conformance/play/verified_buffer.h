// SPDX-License-Identifier: MIT
//
// The accesses of a consumer to its next buffer after it has verified that buffer (E19): it maps
// the buffer, loads its generation, and attaches once more, in one thread. From then on it knows
// the buffer's number and needs no nudge. Knows no case.
#ifndef KMES_CONFORMANCE_PLAY_VERIFIED_BUFFER_H_
#define KMES_CONFORMANCE_PLAY_VERIFIED_BUFFER_H_

#include "conformance/play/steps.h"

namespace kmes::conformance {

// For ActAt: before an access of that thread to the metadata page of CPU 0's next buffer. The wake
// replaces the buffer.
PlayAt at_access_to_a_verified_buffer();

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_VERIFIED_BUFFER_H_
