// SPDX-License-Identifier: MIT
//
// The signals that the runner handles. Knows no run.
#ifndef KMES_CONFORMANCE_MAIN_INTERRUPT_H_
#define KMES_CONFORMANCE_MAIN_INTERRUPT_H_

#include "conformance/model/stop_flag.h"

namespace kmes::conformance {

// Installs handlers for SIGINT, SIGTERM and SIGHUP that set the flag, without SA_RESTART: a blocked
// wait returns EINTR. A second signal changes nothing, so a report is always written to its end.
// SIGQUIT keeps its default action, which ends the process at once; the testee dies with its
// tracer.
StopFlag& watch_interrupts();

// From now on a write beyond RLIMIT_FSIZE fails with EFBIG, and a write to a pipe without a reader
// with EPIPE. SIGXFSZ and SIGPIPE no longer end the process: their handler does nothing. SIG_IGN
// would survive execve(), but a handler is reset, so a started program gets the disposition that
// this process got.
void report_failed_writes();

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_INTERRUPT_H_
