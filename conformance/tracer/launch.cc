// SPDX-License-Identifier: MIT
//
// The runner's side of a launch: the orders, the clone, and the end of the child. The child's side
// is in launch_child.c. Knows no buffers and no events.
//
// A fork would copy the page tables of the runner for a child that discards them. Afterwards each
// first write of the runner to a page would cost a fault and an interrupt of other processors. That
// was a quarter of the time of an explored run.

#include "conformance/tracer/launch.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <system_error>
#include <thread>

#include "conformance/tracer/launch_child.h"

namespace kmes::conformance::tracing {

static_assert(kReportFd == KMES_LAUNCH_LAST_FD, "the report is the last descriptor");

namespace {

constexpr int kLowestFd = 10;
constexpr int kPatienceMs = 1000;

// Clones with all signals blocked. A signal before the child has reset its handlers would run the
// runner's handler in the runner's memory.
long clone_unheard(void* stack_top, int* shares, const kmes_launch_orders* orders) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const long child = kmes_launch_clone(stack_top, shares, orders);
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

// The data that the child needs while it runs in the runner's memory. Kept until the child has left
// that memory.
struct Launch::Shared {
    kmes_launch_orders orders{};
    std::vector<char*> arguments;
    std::vector<char*> environment;
    std::vector<char*> candidates;
    int is_in_use = 0;  // the kernel writes it, too
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
        socket_,
        {plan.standard_input, plan.standard_output, plan.standard_error, plan.report},
        plan.fixed_addresses,
        program_of(plan.outer_filter),
        program_of(plan.filter),
        shared_->candidates.data(),
        shared_->arguments.data(),
        shared_->environment.data()};
    long child = -dup_error;
    if (child_end >= 0) {
        __atomic_store_n(&shared_->is_in_use, 1, __ATOMIC_SEQ_CST);
        child = clone_unheard(shared_->stack.data() + shared_->stack.size(), &shared_->is_in_use,
                              &shared_->orders);
        close(child_end);
    }
    if (child < 0) {
        __atomic_store_n(&shared_->is_in_use, 0, __ATOMIC_SEQ_CST);
        close(socket_);
        throw std::system_error(static_cast<int>(-child), std::generic_category(),
                                "clone for a testee");
    }
    pid_ = static_cast<pid_t>(child);
}

Launch::~Launch() {
    close(socket_);
    // A child that waits for let_go ends now. A killed or executed child is gone already. Any other
    // (held by another tracer, say) keeps its stack.
    for (int i = 0; __atomic_load_n(&shared_->is_in_use, __ATOMIC_SEQ_CST) != 0; ++i) {
        if (i == kPatienceMs) {
            static_cast<void>(shared_.release());
            return;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

void Launch::let_go() {
    // MSG_NOSIGNAL: the child may be dead already; that is noticed as its end.
    send(socket_, "g", 1, MSG_NOSIGNAL);
}

Launch::Failure Launch::failure() {
    kmes_launch_failure failure{};
    if (recv(socket_, &failure, sizeof failure, MSG_DONTWAIT) != sizeof failure) return {};
    return {failure.error, failure.at_exec != 0, failure.candidate};
}

std::string explain_exec_error(const std::string& name, const std::string& file, int error) {
    struct stat info{};
    const bool there = stat(file.c_str(), &info) == 0;
    switch (error) {
        case ENOENT:
            if (there)
                return file +
                       ": the interpreter (the #! line, or the dynamic loader) does not exist";
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
