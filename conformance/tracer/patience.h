// SPDX-License-Identifier: MIT
//
// A limit on a wait that excludes time in which the runner or the testee had no processor. On a
// busy machine a thread that is ready to run can wait for many seconds (20 were seen, because the
// scheduler forgot it). A virtual machine can pause, and a signal can stop the runner. Knows /proc,
// no stops.

#ifndef CONFORMANCE_TRACER_PATIENCE_H_
#define CONFORMANCE_TRACER_PATIENCE_H_

#include <sys/types.h>

#include <map>
#include <vector>

#include "conformance/tracer/types.h"

namespace kmes::conformance {

// Figures of one thread since it began. Zeros if the kernel keeps no count or the thread is gone.
struct ProcessorTime {
    Clock::duration had{};
    Clock::duration waited_for{};  // the time that it was ready to run without a processor
};
ProcessorTime processor_time_of(pid_t tid);

class Patience {
  public:
    // The wait begins now.
    explicit Patience(Clock::duration limit) : limit_(limit) { restart(); }
    void restart();
    // Returns true after the limit plus all lost time, or after ten times the limit. Call it in
    // every iteration of the wait: time between two calls beyond half a second counts as lost.
    // `tids` are the threads that the caller waits for.
    bool is_over(const std::vector<pid_t>& tids);

  private:
    void begin_to_count(TimePoint now);
    // Adds the time that the threads lost since the last check. Returns true if a thread is ready
    // to run and has not run since.
    bool check(const std::vector<pid_t>& tids);

    Clock::duration limit_;
    bool is_short_ = true;
    TimePoint begin_;
    TimePoint asked_;
    TimePoint next_check_;
    Clock::duration lost_{};
    std::map<pid_t, ProcessorTime> times_;
};

}  // namespace kmes::conformance

#endif  // CONFORMANCE_TRACER_PATIENCE_H_
