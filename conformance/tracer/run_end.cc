// SPDX-License-Identifier: MIT
//
// See run_end.h.

#include "conformance/tracer/run_end.h"

#include <sys/wait.h>

#include <csignal>
#include <cstring>

namespace kmes::conformance::tracing {

Ended RunEnd::begin(EndKind kind, pid_t pid, bool is_mapped) const {
    Ended ended;
    ended.kind = kind;
    ended.pid = pid;
    ended.attached = is_attached_;
    ended.mapped = is_mapped;
    return ended;
}

Ended RunEnd::describe(pid_t pid, int status, bool is_mapped, bool needs_ptrace) const {
    Ended ended = begin(EndKind::kExited, pid, is_mapped);
    ended.fault = last_fault_;
    ended.sanitizer_needs_ptrace = needs_ptrace;
    if (WIFSIGNALED(status)) {
        ended.kind = EndKind::kKilled;
        ended.signal = WTERMSIG(status);
        ended.is_from_outside = ended.signal == SIGKILL || ended.signal == SIGXCPU ||
                                is_last_outside_signal(ended.signal);
        if (ended.fault && ended.fault->signal != ended.signal) ended.fault.reset();
        if (ended.fault) ended.thread = ended.fault->tid;
        ended.text = "killed by " + (ended.fault ? ended.fault->describe()
                                                 : std::string("SIG") + sigabbrev_np(ended.signal));
        return ended;
    }
    ended.exit_status = WEXITSTATUS(status);
    ended.thread = exiting_thread_;
    ended.text = "exited with status " + std::to_string(ended.exit_status);
    if (needs_ptrace) {
        ended.text +=
            ": its LeakSanitizer does not work in a traced program (ASAN_OPTIONS=detect_leaks=0 "
            "switches it off)";
    } else if (!is_attached_) {
        ended.text += " without having called kmes_attach (system call 1091)";
    }
    return ended;
}

}  // namespace kmes::conformance::tracing
