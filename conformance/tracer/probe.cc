// SPDX-License-Identifier: MIT
//
// Finds out what ptrace and seccomp permit on this machine, by trying it once. Knows no testee.

#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <mutex>

#include "conformance/tracer/launch.h"
#include "conformance/tracer/proc.h"
#include "conformance/tracer/traced_calls.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance::tracing {
namespace {

[[noreturn]] void run_probe_child(int socket, const std::vector<sock_filter>& outer,
                                  const std::vector<sock_filter>& filter) {
    char go = 0;
    if (read(socket, &go, 1) != 1) _exit(1);
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    for (const auto* installed : {&outer, &filter}) {
        if (installed->empty()) continue;
        sock_fprog program{static_cast<unsigned short>(installed->size()),
                           const_cast<sock_filter*>(installed->data())};
        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0) _exit(1);
    }
    syscall(kAttachCallNumber, 0, 0, 0);
    _exit(0);
}

std::string explain_refusal(int error) {
    const auto yama = read_small_file("/proc/sys/kernel/yama/ptrace_scope");
    const std::string scope = yama ? yama->substr(0, 1) : "";
    if (scope == "3") {
        return "ptrace is switched off for good on this machine (kernel.yama.ptrace_scope is 3): "
               "boot it with a lower value";
    }
    if (scope == "2") {
        return "ptrace needs CAP_SYS_PTRACE on this machine (kernel.yama.ptrace_scope is 2): set "
               "it to 1 or run as root";
    }
    return std::string("ptrace of a child is refused here (") + strerror(error) +
           "): in a container allow it (--cap-add=SYS_PTRACE, or a seccomp profile with ptrace); "
           "under a debugger or strace run without it";
}

// Follows the probe child to its end. Returns true if its 1091 stopped it.
bool saw_attach_stop(pid_t child) {
    bool seen = false;
    int status = 0;
    while (wait_for(child, &status) == child && WIFSTOPPED(status)) {
        // Its exit call is traced as well, and an outer filter may let that pass.
        if (status >> 16 == PTRACE_EVENT_SECCOMP) {
            __ptrace_syscall_info info{};
            ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof info, &info);
            seen = seen || info.seccomp.nr == static_cast<uint64_t>(kAttachCallNumber);
        }
        ptrace(PTRACE_CONT, child, 0, 0);
    }
    return seen;
}

// The threads of a testee, their states and its memory map are in /proc.
std::string explain_proc() {
    char link[32] = {};
    const ssize_t length = readlink("/proc/self", link, sizeof link - 1);
    if (length > 0 && link == std::to_string(getpid())) return "";
    return "/proc is missing, or shows another process namespace: mount it for this one (mount -t "
           "proc proc /proc, or unshare --mount-proc)";
}

Abilities probe(bool simulate_outer_filter) {
    Abilities abilities;
    abilities.why_not_traceable = explain_proc();
    if (!abilities.why_not_traceable.empty()) return abilities;
    const auto filter = traced_calls_filter(true);
    const auto outer = simulate_outer_filter ? outer_filter() : std::vector<sock_filter>{};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        abilities.why_not_traceable = std::string("no descriptors for a probe: ") + strerror(errno);
        return abilities;
    }
    const pid_t child = fork();
    if (child == 0) run_probe_child(ends[1], outer, filter);
    if (child < 0) {
        abilities.why_not_traceable = std::string("no process for a probe: ") + strerror(errno);
    } else if (ptrace(PTRACE_SEIZE, child, 0, PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL) != 0) {
        abilities.why_not_traceable = explain_refusal(errno);
        kill(child, SIGKILL);
        int status = 0;
        wait_for(child, &status);
    } else {
        send(ends[0], "g", 1, MSG_NOSIGNAL);
        abilities.seccomp_trace = saw_attach_stop(child);
    }
    close(ends[0]);
    close(ends[1]);
    return abilities;
}

}  // namespace

pid_t wait_for(pid_t pid, int* status) {
    pid_t got = 0;
    do {
        got = waitpid(pid, status, __WALL);
    } while (got < 0 && errno == EINTR);
    return got;
}

const Abilities& probe_abilities(bool simulate_outer_filter) {
    static std::once_flag once[2];
    static Abilities abilities[2];
    const int index = simulate_outer_filter ? 1 : 0;
    std::call_once(once[index], [&] { abilities[index] = probe(simulate_outer_filter); });
    return abilities[index];
}

}  // namespace kmes::conformance::tracing
