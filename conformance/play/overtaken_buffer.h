// SPDX-License-Identifier: MIT
//
// A next buffer that is overwritten before it is read, as a step of a row with one CPU (steps.h).
// Knows no case.
#ifndef KMES_CONFORMANCE_PLAY_OVERTAKEN_BUFFER_H_
#define KMES_CONFORMANCE_PLAY_OVERTAKEN_BUFFER_H_

#include "conformance/stage/stage.h"

namespace kmes::conformance {

// Leaves five events unread and replaces the buffer, before each access to its metadata page in
// turn. All of them survive in the next buffer, but that buffer is overwritten before it is read.
// The old buffer still has all of them.
struct OvertakeNextBuffer {
    void operator()(Stage& stage) const;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_OVERTAKEN_BUFFER_H_
