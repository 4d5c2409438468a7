// SPDX-License-Identifier: MIT
//
// Starts a testee's process: a cloned child waits until it is seized, sets itself up and executes
// the program. Also probes what this machine permits. Knows no buffers and no events.

#ifndef CONFORMANCE_TRACER_LAUNCH_H_
#define CONFORMANCE_TRACER_LAUNCH_H_

#include <linux/filter.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kmes::conformance::tracing {

// All that the child needs, prepared before the clone: between clone and exec nothing may allocate.
// The plan must outlive the Launch.
struct LaunchPlan {
    std::vector<std::string> arguments;
    std::vector<std::string> candidates;   // the files to try, in order (PATH)
    std::vector<std::string> environment;  // "NAME=value"
    bool fixed_addresses = false;
    int standard_input = -1;  // these four: descriptors of at least 10
    int standard_output = -1;
    int standard_error = -1;
    int report = -1;
    std::vector<sock_filter> outer_filter;  // installed first; may be empty
    std::vector<sock_filter> filter;        // installed last; may be empty
};

// The number of the report file in the testee: the lowest free one, with one digit for shells.
inline constexpr int kReportFd = 3;
inline constexpr std::string_view kReportVariable = "KMES_REPORT_FD";  // names it (contract)

// The files that execvp would try for `name`, from the PATH in `environment`.
std::vector<std::string> executable_candidates(const std::string& name,
                                               const std::vector<std::string>& environment);

// The runner's environment with `changes` and KMES_REPORT_FD.
std::vector<std::string> testee_environment(const std::vector<std::string>& changes);

// A child that waits until let_go(). It shares the runner's memory until it executes (CLONE_VM).
class Launch {
  public:
    // Throws std::system_error if no descriptor or no process is available.
    explicit Launch(const LaunchPlan& plan);
    // Before: the child has executed or was killed, or let_go() was never called.
    ~Launch();
    Launch(const Launch&) = delete;
    Launch& operator=(const Launch&) = delete;

    pid_t pid() const { return pid_; }
    // Call it after the child has been seized: the child sets itself up and executes.
    void let_go();

    // The step of the child that failed, after it has ended without executing.
    struct Failure {
        int error = 0;           // 0: the child reported none
        bool at_exec = false;    // true: execve failed; false: setting up failed (seccomp,
                                 // descriptors)
        unsigned candidate = 0;  // at_exec: index of the file that gave the error
    };
    Failure failure();

  private:
    struct Shared;

    pid_t pid_ = -1;
    int socket_ = -1;
    std::unique_ptr<Shared> shared_;
};

// Returns one line with the reason why `file` cannot be executed: `error` from execve.
std::string explain_exec_error(const std::string& name, const std::string& file, int error);

// The abilities of ptrace and seccomp on this machine. A briefly traced child tests each, once in a
// process.
struct Abilities {
    std::string why_not_traceable;  // empty: fine
    bool seccomp_trace = false;     // SECCOMP_RET_TRACE for 1091 is seen
};
const Abilities& probe_abilities(bool simulate_outer_filter);

// As waitpid with __WALL. Continues after a signal.
pid_t wait_for(pid_t pid, int* status);

// Returns why no watchpoint of the processor reports an access; "" if one does. It tries one in a
// child, the first time. (watchpoints.cc)
const std::string& probe_watchpoints();

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_LAUNCH_H_
