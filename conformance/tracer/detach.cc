// SPDX-License-Identifier: MIT
//
// Stops tracing the whole run, and leaves it stopped by SIGSTOP so that another program can trace
// it. Knows nothing of that program.

#include <sys/ptrace.h>

#include <csignal>

#include "conformance/tracer/engine.h"

namespace kmes::conformance {

bool Tracer::Engine::detach(TimePoint deadline) {
    // With a filter, the filtered calls would return ENOSYS without a tracer.
    if (program_.interception() != Interception::kEveryCall || tracees_.testee() == 0 ||
        end_.is_over())
        return false;
    for (size_t i = 0; i < mappings_.size(); ++i) release_guards(i);
    if (!freeze_all(deadline)) return false;
    const pid_t pid = tracees_.testee();
    processor_.restore(tracees_.all_threads());
    // The signal is pending before the threads resume, so none executes another instruction.
    if (kill(pid, SIGSTOP) != 0) return false;
    for (auto& [tid, thread] : tracees_.threads()) {
        if (!is_testee(thread)) continue;
        // No guard is left, so this disarms the watchpoints.
        arm_watchpoints(thread);
        settle_signals(thread);
        const long signal_number = thread.now == StopKind::kSignal ? thread.signal.deliver : 0;
        ptrace(PTRACE_DETACH, tid, 0, signal_number);
    }
    tracees_.remove_testee_threads();
    stops_.clear_backlog();
    events_.clear();
    tracees_.set_frozen(false);
    Ended ended = end_.begin(EndKind::kKilled, pid, !mappings_.is_empty());
    ended.text = "let go";
    end_.set(std::move(ended));
    return true;
}

}  // namespace kmes::conformance
