// SPDX-License-Identifier: MIT
//
// The end of a run, and the facts known in advance about its cause. Knows no processes.

#ifndef CONFORMANCE_TRACER_RUN_END_H_
#define CONFORMANCE_TRACER_RUN_END_H_

#include <sys/types.h>

#include <optional>
#include <string>

#include "conformance/tracer/events.h"

namespace kmes::conformance::tracing {

class RunEnd {
  public:
    bool is_over() const { return ended_.has_value(); }
    // Before: the run is over.
    const Ended& ended() const { return *ended_; }
    void set(Ended ended) { ended_ = std::move(ended); }

    void note_attach() { is_attached_ = true; }
    bool is_attached() const { return is_attached_; }
    // A thread of the testee calls exit_group. If several do, the kernel takes the first.
    void note_exit_call(pid_t tid) {
        if (exiting_thread_ == 0) exiting_thread_ = tid;
    }
    // A fatal signal is about to be delivered.
    void note_fault(Fault fault) {
        // If another thread's fault is ending the process, this thread can no longer be read.
        if (fault.code_place.details || !last_fault_) last_fault_ = std::move(fault);
    }

    // A signal from another process is about to be delivered.
    void note_outside_signal(int signal) { last_outside_signal_ = signal; }
    bool is_last_outside_signal(int signal) const { return signal == last_outside_signal_; }

    // Returns an end with these facts and those noted before.
    Ended begin(EndKind kind, pid_t pid, bool is_mapped) const;
    // Returns the end that the status of the process describes. `needs_ptrace`: see
    // Ended::sanitizer_needs_ptrace.
    Ended describe(pid_t pid, int status, bool is_mapped, bool needs_ptrace) const;

  private:
    std::optional<Ended> ended_;
    bool is_attached_ = false;
    std::optional<Fault> last_fault_;
    int last_outside_signal_ = 0;
    pid_t exiting_thread_ = 0;  // the first thread of the testee that called exit_group
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_RUN_END_H_
