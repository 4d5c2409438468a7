// SPDX-License-Identifier: MIT
//
// Cloning and setting up the child. Knows no buffers and no events.
//
// A fork would copy the page tables of the runner for a child that throws them away, and every
// page that the runner writes to behind it would cost it a fault and the other processors an
// interrupt: a quarter of the time of an explored run.

#include "conformance/tracer/launch.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>
#include <thread>

#include "conformance/tracer/kernel_signals.h"

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

namespace kmes::conformance::tracing {

// LaunchPlan in what the child may read without a call.
struct LaunchOrders {
    int socket;
    int descriptors[kReportFd + 1];
    bool fixed_addresses;
    sock_fprog outer_filter;
    sock_fprog filter;
    char* const* candidates;  // this and the next two end with a null pointer
    char* const* arguments;
    char* const* environment;
};

namespace {

constexpr int kLowestFd = 10;
constexpr int kSetUpFailed = 126;
constexpr int kSignals = 64;
constexpr int kPatienceMs = 1000;

// The child's word of what went wrong.
struct Message {
    int error;
    int at_exec;
    unsigned candidate;
};

// The child runs in the runner's memory until it executes: in what follows nothing may write to
// it but to the child's own stack. So no libc (errno is the runner's), and no sanitizer's calls
// (their books are of the runner's thread).
#define KMES_IN_SHARED_MEMORY \
    __attribute__((noinline, no_sanitize("address", "thread", "undefined")))

// A system call: its result, or -errno.
KMES_IN_SHARED_MEMORY long call(long number, long first = 0, long second = 0, long third = 0,
                                long fourth = 0) {
    long result = number;
    register long r10 asm("r10") = fourth;
    asm volatile("syscall"
                 : "+a"(result)
                 : "D"(first), "S"(second), "d"(third), "r"(r10)
                 : "rcx", "r11", "memory");
    return result;
}

KMES_IN_SHARED_MEMORY long address(const void* place) {
    return reinterpret_cast<long>(place);
}

KMES_IN_SHARED_MEMORY void fail(int socket, long error, bool at_exec, unsigned candidate) {
    const Message message{static_cast<int>(-error), at_exec ? 1 : 0, candidate};
    // Nobody is left to tell if this write fails.
    call(SYS_write, socket, address(&message), sizeof message);
    call(SYS_exit_group, kSetUpFailed);
}

KMES_IN_SHARED_MEMORY long install_filter(const sock_fprog& filter) {
    if (filter.len == 0) return 0;
    // SPEC_ALLOW: a traced call costs enough without the mitigation that old kernels switch on with
    // seccomp.
    if (call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
             address(&filter)) == 0)
        return 0;
    return call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, address(&filter));
}

// Signals as a fresh session would have them, whatever the runner ignores or blocks.
KMES_IN_SHARED_MEMORY void reset_signals() {
    const SignalAction fresh{};
    for (int signal_number = 1; signal_number <= kSignals; ++signal_number)
        call(SYS_rt_sigaction, signal_number, address(&fresh), 0, sizeof fresh.mask);
    call(SYS_rt_sigprocmask, SIG_SETMASK, address(&fresh.mask), 0, sizeof fresh.mask);
}

KMES_IN_SHARED_MEMORY long place_descriptors(const int (&descriptors)[kReportFd + 1]) {
    // All four are above these numbers, so none can be overwritten before it is used.
    for (int fd = 0; fd <= kReportFd; ++fd) {
        const long error = call(SYS_dup2, descriptors[fd], fd);
        if (error < 0) return error;
    }
    if (call(SYS_close_range, kReportFd + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return 0;
    for (int fd = kReportFd + 1; fd < 4096; ++fd) call(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
    return 0;
}

// Everything between clone and exec; returns only where the runner has gone.
KMES_IN_SHARED_MEMORY void run_child(const LaunchOrders* orders) {
    const int socket = orders->socket;
    call(SYS_setsid);
    char go = 0;
    if (call(SYS_read, socket, address(&go), 1) != 1) return;
    long error = place_descriptors(orders->descriptors);
    if (error < 0) fail(socket, error, false, 0);
    reset_signals();
    if (orders->fixed_addresses) call(SYS_personality, ADDR_NO_RANDOMIZE);
    const rlimit no_core{0, 0};
    call(SYS_prlimit64, 0, RLIMIT_CORE, address(&no_core));
    if (orders->outer_filter.len != 0 || orders->filter.len != 0) {
        error = call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1);
        if (error == 0) error = install_filter(orders->outer_filter);
        if (error == 0) error = install_filter(orders->filter);
        if (error != 0) fail(socket, error, false, 0);
    }
    long outranks = -ENOENT;
    unsigned failed = 0;
    for (unsigned i = 0; orders->candidates[i] != nullptr; ++i) {
        error = call(SYS_execve, address(orders->candidates[i]), address(orders->arguments),
                     address(orders->environment));
        // As execvp: a file that is there but cannot be executed outranks one that is not there.
        if (error != -ENOENT && error != -ENOTDIR) {
            outranks = error;
            failed = i;
            if (error != -EACCES) break;
        }
    }
    fail(socket, outranks, true, failed);
}

KMES_IN_SHARED_MEMORY void begin_child(const LaunchOrders* orders) {
    run_child(orders);
    call(SYS_exit_group, kSetUpFailed);
}

// clone(2): a process of its own in the memory of this one, on `stack_top`, whose `shares` becomes
// 0 when it has left that memory (CLONE_CHILD_CLEARTID: by exec, or by its end). glibc's clone
// would do, but a sanitizer may take its place. The child's pid, or -errno.
long clone_child(void* stack_top, std::atomic<int>* shares, const LaunchOrders* orders) {
    long result = SYS_clone;
    register std::atomic<int>* r10 asm("r10") = shares;
    register const LaunchOrders* r12 asm("r12") = orders;
    register void (*r13)(const LaunchOrders*) asm("r13") = begin_child;
    asm volatile(
        "syscall\n\t"
        "test %%rax, %%rax\n\t"
        "jnz 1f\n\t"
        "xor %%ebp, %%ebp\n\t"  // the end of the child's backtrace
        "mov %%r12, %%rdi\n\t"
        "call *%%r13\n\t"
        "ud2\n"
        "1:"
        : "+a"(result)
        : "D"(CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD), "S"(stack_top), "d"(0L), "r"(r10),
          "r"(r12), "r"(r13)
        : "rcx", "r11", "memory", "cc");
    return result;
}

// With every signal blocked: one that the child took before it has reset them would run the
// runner's handler, in the runner's memory.
long clone_unheard(void* stack_top, std::atomic<int>* shares, const LaunchOrders* orders) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const long child = clone_child(stack_top, shares, orders);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return child;
}

sock_fprog program_of(const std::vector<sock_filter>& filter) {
    return {static_cast<unsigned short>(filter.size()), const_cast<sock_filter*>(filter.data())};
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
    std::vector<char*> result;
    for (const std::string& string : strings) result.push_back(const_cast<char*>(string.c_str()));
    result.push_back(nullptr);
    return result;
}

bool same_variable(std::string_view a, std::string_view b) {
    return a.substr(0, a.find('=')) == b.substr(0, b.find('='));
}

void set_variable(std::vector<std::string>& environment, const std::string& assignment) {
    std::erase_if(environment,
                  [&](const std::string& old) { return same_variable(old, assignment); });
    environment.push_back(assignment);
}

}  // namespace

std::vector<std::string> testee_environment(const std::vector<std::string>& changes) {
    std::vector<std::string> environment;
    for (char** variable = environ; *variable != nullptr; ++variable)
        environment.emplace_back(*variable);
    for (const std::string& change : changes) set_variable(environment, change);
    set_variable(environment, std::string(kReportVariable) + "=" + std::to_string(kReportFd));
    return environment;
}

std::vector<std::string> executable_candidates(const std::string& name,
                                               const std::vector<std::string>& environment) {
    if (name.find('/') != std::string::npos || name.empty()) return {name};
    std::string path = "/usr/local/bin:/usr/bin:/bin";
    for (const std::string& variable : environment) {
        if (variable.rfind("PATH=", 0) == 0) path = variable.substr(5);
    }
    std::vector<std::string> candidates;
    for (size_t at = 0; at <= path.size();) {
        const size_t end = std::min(path.find(':', at), path.size());
        const std::string folder = path.substr(at, end - at);
        candidates.push_back((folder.empty() ? "." : folder) + "/" + name);
        at = end + 1;
    }
    return candidates;
}

// What the child needs where it runs in the runner's memory; stays until it has left it.
struct Launch::Shared {
    LaunchOrders orders{};
    std::vector<char*> arguments;
    std::vector<char*> environment;
    std::vector<char*> candidates;
    std::atomic<int> is_in_use{0};
    alignas(16) std::array<std::byte, 16 << 10> stack;
};

Launch::Launch(const LaunchPlan& plan) : shared_(std::make_unique<Shared>()) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        throw std::system_error(errno, std::generic_category(), "socketpair for a testee");
    }
    const int child_end = fcntl(ends[1], F_DUPFD_CLOEXEC, kLowestFd);
    const int dup_error = errno;
    close(ends[1]);
    socket_ = ends[0];
    shared_->arguments = pointers(plan.arguments);
    shared_->environment = pointers(plan.environment);
    shared_->candidates = pointers(plan.candidates);
    shared_->orders = {
        child_end,
        {plan.standard_input, plan.standard_output, plan.standard_error, plan.report},
        plan.fixed_addresses,
        program_of(plan.outer_filter),
        program_of(plan.filter),
        shared_->candidates.data(),
        shared_->arguments.data(),
        shared_->environment.data()};
    long child = -dup_error;
    if (child_end >= 0) {
        shared_->is_in_use = 1;
        child = clone_unheard(shared_->stack.data() + shared_->stack.size(), &shared_->is_in_use,
                              &shared_->orders);
        close(child_end);
    }
    if (child < 0) {
        shared_->is_in_use = 0;
        close(socket_);
        throw std::system_error(static_cast<int>(-child), std::generic_category(),
                                "clone for a testee");
    }
    pid_ = static_cast<pid_t>(child);
}

Launch::~Launch() {
    close(socket_);
    // A child that waits for let_go ends now; one that was killed or has executed has gone. For
    // any other (held by somebody else's ptrace, say) its stack is left to it.
    for (int i = 0; shared_->is_in_use != 0; ++i) {
        if (i == kPatienceMs) {
            static_cast<void>(shared_.release());
            return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void Launch::let_go() {
    // MSG_NOSIGNAL: the child may have been killed already, and that is seen as its end.
    send(socket_, "g", 1, MSG_NOSIGNAL);
}

Launch::Failure Launch::failure() {
    Message message{};
    if (recv(socket_, &message, sizeof message, MSG_DONTWAIT) != sizeof message) return {};
    return {message.error, message.at_exec != 0, message.candidate};
}

std::string explain_exec_error(const std::string& name, const std::string& file, int error) {
    struct stat info{};
    const bool there = stat(file.c_str(), &info) == 0;
    switch (error) {
        case ENOENT:
            if (there)
                return file + ": its interpreter (the #! line, or the dynamic loader) is not there";
            if (name.find('/') == std::string::npos) return name + ": no such program in PATH";
            return name + ": no such file";
        case EACCES:
            if (there && S_ISDIR(info.st_mode)) return file + ": is a folder, not a program";
            return file + ": is not executable by this user (chmod +x, or a mount with noexec)";
        case ENOEXEC:
            return file + ": neither a program for this machine nor a script that begins with #!";
        default:
            return file + ": " + strerror(error);
    }
}

}  // namespace kmes::conformance::tracing
