// SPDX-License-Identifier: MIT
//
// Stops tracing the whole run, and leaves it stopped by SIGSTOP so that another program can trace
// it. Knows nothing of what follows.

#include <sys/ptrace.h>

#include <csignal>

#include "conformance/tracer/engine.h"

namespace kmes::conformance {

bool Tracer::Engine::detach(TimePoint deadline) {
    // With a filter, the filtered calls would return ENOSYS without a tracer.
    if (interception_ != Interception::kEveryCall || testee_ == 0 || ended_) return false;
    for (size_t i = 0; i < mappings_.size(); ++i) release_guards(i);
    if (!freeze_all(deadline)) return false;
    const pid_t pid = testee_;
    let_apart();
    // The signal is pending before the threads resume, so none executes another instruction.
    if (kill(pid, SIGSTOP) != 0) return false;
    for (auto& [tid, thread] : threads_) {
        if (!is_testee(thread)) continue;
        arm_watchpoints(thread);  // no guard is left: disarm
        settle_signals(thread);
        const long signal_number = thread.now == StopKind::kSignal ? thread.deliver_signal : 0;
        ptrace(PTRACE_DETACH, tid, 0, signal_number);
    }
    std::erase_if(threads_, [this](const auto& entry) { return is_testee(entry.second); });
    backlog_.clear();
    events_.clear();
    frozen_ = false;
    Ended ended;
    ended.kind = EndKind::kKilled;
    ended.pid = pid;
    ended.attached = attached_;
    ended.mapped = !mappings_.empty();
    ended.text = "let go";
    ended_ = ended;
    return true;
}

}  // namespace kmes::conformance
