// SPDX-License-Identifier: MIT
//
// The limit on open files. The runner raises its own, because it serves many buffers at the same
// time. Its testees keep the limit that the runner was started with.
#ifndef CONFORMANCE_TRACER_OPEN_FILES_H_
#define CONFORMANCE_TRACER_OPEN_FILES_H_

#include <sys/types.h>

#include <cstdint>

namespace kmes::conformance {

// Raises the soft limit of this process to `wanted`, or to the hard limit where that is less.
// Returns the soft limit after it. Call it before the first testee is started.
uint64_t raise_open_files(uint64_t wanted);

namespace tracing {

// Gives a testee that has not yet executed the limit that raise_open_files found.
void restore_open_files(pid_t testee);

}  // namespace tracing
}  // namespace kmes::conformance

#endif  // CONFORMANCE_TRACER_OPEN_FILES_H_
