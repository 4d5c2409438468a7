// SPDX-License-Identifier: MIT
//
// A waitpid with a deadline: the signal of a timer interrupts it. This file does not know
// threads or stops.

#ifndef CONFORMANCE_TRACER_DEADLINE_H_
#define CONFORMANCE_TRACER_DEADLINE_H_

#include <signal.h>
#include <sys/types.h>
#include <time.h>

#include <optional>
#include <utility>

#include "conformance/tracer/types.h"

namespace kmes::conformance::tracing {

// Belongs to the thread that makes it. The timer's signal is blocked there outside of wait().
class DeadlineTimer {
  public:
    // Throws std::system_error if the system gives no timer.
    DeadlineTimer();
    ~DeadlineTimer();
    DeadlineTimer(const DeadlineTimer&) = delete;
    DeadlineTimer& operator=(const DeadlineTimer&) = delete;

    // Returns the next child of this thread that has stopped or ended, and its status. Returns
    // nothing at the deadline, and {-1, errno} if waitpid fails.
    std::optional<std::pair<pid_t, int>> wait(TimePoint deadline);

  private:
    void arm(TimePoint at);

    timer_t timer_ = {};
    sigset_t own_signal_ = {};
    bool was_blocked_ = false;
    TimePoint armed_at_ = {};
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_DEADLINE_H_
