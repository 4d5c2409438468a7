// SPDX-License-Identifier: MIT
//
// SIGCHLD of the thread that traces. Knows no children.

#ifndef CONFORMANCE_TRACER_CHILD_SIGNAL_H_
#define CONFORMANCE_TRACER_CHILD_SIGNAL_H_

#include <signal.h>

namespace kmes::conformance::tracing {

// While it exists, SIGCHLD is blocked in its thread and has the default action. A blocked SIGCHLD
// stays pending, so a stop between a check and a sleep ends the sleep. If it were ignored, or with
// SA_NOCLDSTOP, stops would be hidden.
class ChildSignal {
  public:
    ChildSignal();
    // Restores both, and drops a pending SIGCHLD, unless SIGCHLD was blocked before.
    ~ChildSignal();
    ChildSignal(const ChildSignal&) = delete;
    ChildSignal& operator=(const ChildSignal&) = delete;

  private:
    sigset_t old_mask_ = {};
    struct sigaction old_action_ = {};
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_CHILD_SIGNAL_H_
