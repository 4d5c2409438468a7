// SPDX-License-Identifier: MIT
//
// Lets the whole run go, stopped by SIGSTOP, so that somebody else can trace it. Knows nothing of
// what comes then.

#include <sys/ptrace.h>

#include <csignal>

#include "conformance/tracer/engine.h"

namespace kmes::conformance {

bool Tracer::Engine::detach(TimePoint deadline) {
    // With a filter, the calls that it traces would give ENOSYS without a tracer.
    if (interception_ != Interception::kEveryCall || testee_ == 0 || ended_) return false;
    for (size_t i = 0; i < mappings_.size(); ++i) release_guards(i);
    if (!freeze_all(deadline)) return false;
    const pid_t pid = testee_;
    let_apart();
    // Pending before they are let go: none of them executes an instruction more.
    if (kill(pid, SIGSTOP) != 0) return false;
    for (auto& [tid, thread] : threads_) {
        if (!is_testee(thread)) continue;
        arm_watchpoints(thread);  // no guard is left: off with them
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
