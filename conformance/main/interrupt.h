// SPDX-License-Identifier: MIT
//
// The signals that the runner handles. Knows no run.
#ifndef KMES_CONFORMANCE_MAIN_INTERRUPT_H_
#define KMES_CONFORMANCE_MAIN_INTERRUPT_H_

#include "conformance/model/stop_flag.h"

namespace kmes::conformance {

// Installs handlers for SIGINT, SIGTERM and SIGHUP that set the flag, without SA_RESTART: a blocked
// wait returns with EINTR. A further signal changes nothing: a report that is being written is
// written to its end. SIGQUIT keeps its default action, which ends the process at once; the testee
// dies with its tracer.
StopFlag& watch_interrupts();

// From now on a write beyond the limit of file sizes (RLIMIT_FSIZE) and a write to a pipe without a
// reader fail with EFBIG and EPIPE, and do not end the process by SIGXFSZ and SIGPIPE. By a handler
// that does nothing: unlike SIG_IGN, execve() resets it, so that a program that is started gets the
// disposition that this process was given.
void report_failed_writes();

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_INTERRUPT_H_
