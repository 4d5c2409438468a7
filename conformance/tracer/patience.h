// SPDX-License-Identifier: MIT
//
// A limit on a wait that counts no time in which those concerned had no processor: on a busy
// machine a thread that is ready to run can wait for many seconds (20 were seen, with a scheduler
// that forgot it), the runner as well as the testee; a virtual machine can stand still; and
// somebody can stop the runner. Knows /proc, no stops.

#ifndef CONFORMANCE_TRACER_PATIENCE_H_
#define CONFORMANCE_TRACER_PATIENCE_H_

#include <sys/types.h>

#include <map>
#include <vector>

#include "conformance/tracer/types.h"

namespace kmes::conformance {

// Of one thread, since it began. Zeros where the kernel keeps no count, or the thread is gone.
struct ProcessorTime {
    Clock::duration had{};
    Clock::duration waited_for{};  // ready to run, and without a processor
};
ProcessorTime processor_time_of(pid_t tid);

class Patience {
  public:
    // It begins now.
    explicit Patience(Clock::duration limit) : limit_(limit) { restart(); }
    void restart();
    // Whether the wait has taken its limit, and all that was lost, or ten times the limit. To be
    // asked in every turn of the wait: what lies between two questions, but for half a second, is
    // time that the runner did not have. `tids` are the threads that are waited for.
    bool is_over(const std::vector<pid_t>& tids);

  private:
    // What the threads lost since the last look; true: one is ready to run, and has not run since.
    bool look_at(const std::vector<pid_t>& tids);

    Clock::duration limit_;
    TimePoint begin_;
    TimePoint asked_;
    TimePoint next_look_;
    Clock::duration lost_{};
    std::map<pid_t, ProcessorTime> times_;
};

}  // namespace kmes::conformance

#endif  // CONFORMANCE_TRACER_PATIENCE_H_
