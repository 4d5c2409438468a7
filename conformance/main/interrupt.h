// SPDX-License-Identifier: MIT
//
// SIGINT, SIGTERM and SIGHUP: the first asks the run to end cleanly, the second ends it at once.
// Knows no run.
#ifndef KMES_CONFORMANCE_MAIN_INTERRUPT_H_
#define KMES_CONFORMANCE_MAIN_INTERRUPT_H_

#include <atomic>

namespace kmes::conformance {

// Installs the handlers, without SA_RESTART: a blocked wait returns with EINTR. The flag becomes
// true with the first signal. With the second the process exits with status 3; the testee dies with
// its tracer.
const std::atomic<bool>& watch_interrupts();

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_INTERRUPT_H_
