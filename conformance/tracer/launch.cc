// SPDX-License-Identifier: MIT
//
// Forking and setting up the child. Knows no buffers and no events.

#include "conformance/tracer/launch.h"

#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

namespace kmes::conformance::tracing {
namespace {

constexpr int kLowestFd = 10;
constexpr int kSetUpFailed = 126;
constexpr int kSignals = 64;

// The child's word of what went wrong.
struct Message {
    int error;
    int at_exec;
    unsigned candidate;
};

[[noreturn]] void fail(int socket, int error, bool at_exec, unsigned candidate) {
    const Message message{error, at_exec ? 1 : 0, candidate};
    // Nobody is left to tell if this write fails.
    if (write(socket, &message, sizeof message) < 0) _exit(kSetUpFailed);
    _exit(kSetUpFailed);
}

bool install_filter(const std::vector<sock_filter>& filter) {
    sock_fprog program{static_cast<unsigned short>(filter.size()),
                       const_cast<sock_filter*>(filter.data())};
    // SPEC_ALLOW: a traced call costs enough without the mitigation that old kernels switch on with
    // seccomp.
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW,
                   &program) == 0 ||
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

// Signals as a fresh session would have them, whatever the runner ignores or blocks.
void reset_signals() {
    for (int signal_number = 1; signal_number <= kSignals; ++signal_number)
        signal(signal_number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
}

bool place_descriptors(const LaunchPlan& plan) {
    // All four are above these numbers, so none can be overwritten before it is used.
    if (dup2(plan.standard_input, 0) < 0 || dup2(plan.standard_output, 1) < 0 ||
        dup2(plan.standard_error, 2) < 0 || dup2(plan.report, kReportFd) < 0) {
        return false;
    }
    if (syscall(SYS_close_range, kReportFd + 1, ~0U, CLOSE_RANGE_CLOEXEC) == 0) return true;
    for (int fd = kReportFd + 1; fd < 4096; ++fd) fcntl(fd, F_SETFD, FD_CLOEXEC);
    return true;
}

// Everything between fork and exec. Only calls that are safe after fork in a process with threads.
[[noreturn]] void run_child(const LaunchPlan& plan, int socket, char* const* arguments,
                            char* const* environment) {
    setsid();
    char go = 0;
    if (read(socket, &go, 1) != 1) _exit(kSetUpFailed);
    if (!place_descriptors(plan)) fail(socket, errno, false, 0);
    reset_signals();
    if (plan.fixed_addresses) personality(ADDR_NO_RANDOMIZE);
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    if (!plan.outer_filter.empty() || !plan.filter.empty()) {
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) fail(socket, errno, false, 0);
    }
    if (!plan.outer_filter.empty() && !install_filter(plan.outer_filter))
        fail(socket, errno, false, 0);
    if (!plan.filter.empty() && !install_filter(plan.filter)) fail(socket, errno, false, 0);
    int error = ENOENT;
    unsigned failed = 0;
    for (unsigned i = 0; i < plan.candidates.size(); ++i) {
        execve(plan.candidates[i].c_str(), arguments, environment);
        // As execvp: a file that is there but cannot be executed outranks one that is not there.
        if (errno != ENOENT && errno != ENOTDIR) {
            error = errno;
            failed = i;
            if (errno != EACCES) break;
        }
    }
    fail(socket, error, true, failed);
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

Launch::Launch(const LaunchPlan& plan) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        throw std::system_error(errno, std::generic_category(), "socketpair for a testee");
    }
    const int child_end = fcntl(ends[1], F_DUPFD_CLOEXEC, kLowestFd);
    const int dup_error = errno;
    close(ends[1]);
    socket_ = ends[0];
    const std::vector<char*> arguments = pointers(plan.arguments);
    const std::vector<char*> environment = pointers(plan.environment);
    pid_ = child_end < 0 ? -1 : fork();
    if (pid_ == 0) run_child(plan, child_end, arguments.data(), environment.data());
    const int error = child_end < 0 ? dup_error : errno;
    if (child_end >= 0) close(child_end);
    if (pid_ < 0) {
        close(socket_);
        throw std::system_error(error, std::generic_category(), "fork for a testee");
    }
}

Launch::~Launch() {
    close(socket_);
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
