// SPDX-License-Identifier: MIT
//
// The signals that the runner handles. Knows no run.
#ifndef KMES_CONFORMANCE_MAIN_INTERRUPT_H_
#define KMES_CONFORMANCE_MAIN_INTERRUPT_H_

#include "conformance/report/stop_flag.h"

namespace kmes::conformance {

// Installs handlers for SIGINT, SIGTERM and SIGHUP that set the flag, without SA_RESTART: a blocked
// wait returns with EINTR. A further signal changes nothing: a report that is being written is
// written to its end. SIGQUIT keeps its default action, which ends the process at once; the testee
// dies with its tracer.
StopFlag& watch_interrupts();

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_INTERRUPT_H_
