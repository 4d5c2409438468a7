// SPDX-License-Identifier: MIT
//
// The birth of a testee's process: a cloned child that waits to be seized, sets itself up and
// executes the program. Also the probes of what this machine permits. Knows no buffers and no
// events.

#ifndef CONFORMANCE_TRACER_LAUNCH_H_
#define CONFORMANCE_TRACER_LAUNCH_H_

#include <linux/filter.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kmes::conformance::tracing {

// All that the child needs, made before it: between clone and exec nothing may allocate. The plan
// must outlive the Launch.
struct LaunchPlan {
    std::vector<std::string> arguments;
    std::vector<std::string> candidates;   // the files to try, in order (PATH)
    std::vector<std::string> environment;  // "NAME=value"
    bool fixed_addresses = false;
    int standard_input = -1;  // these four at numbers of at least 10
    int standard_output = -1;
    int standard_error = -1;
    int report = -1;
    std::vector<sock_filter> outer_filter;  // installed first; may be empty
    std::vector<sock_filter> filter;        // installed last; may be empty
};

// The report file's number in the testee: the lowest that is free, one digit for shells.
inline constexpr int kReportFd = 3;
inline constexpr std::string_view kReportVariable = "KMES_REPORT_FD";  // names it (contract)

// The files that execvp would try for `name`, from the PATH in `environment`.
std::vector<std::string> executable_candidates(const std::string& name,
                                               const std::vector<std::string>& environment);

// The runner's environment with `changes` and KMES_REPORT_FD.
std::vector<std::string> testee_environment(const std::vector<std::string>& changes);

// A child that has not begun: it waits until let_go(). Until it executes it shares the runner's
// memory (CLONE_VM).
class Launch {
  public:
    // Throws std::system_error if there is no descriptor or no process to be had.
    explicit Launch(const LaunchPlan& plan);
    // The child must have executed or been killed, or not been let go.
    ~Launch();
    Launch(const Launch&) = delete;
    Launch& operator=(const Launch&) = delete;

    pid_t pid() const { return pid_; }
    // To be called when the child has been seized: it sets itself up and executes.
    void let_go();

    // Which step of the child failed, after it has ended without executing.
    struct Failure {
        int error = 0;           // 0: none was told
        bool at_exec = false;    // execve; otherwise setting up (seccomp, descriptors)
        unsigned candidate = 0;  // at_exec: index of the file that gave the error
    };
    Failure failure();

  private:
    struct Shared;

    pid_t pid_ = -1;
    int socket_ = -1;
    std::unique_ptr<Shared> shared_;
};

// One line that says why `file` cannot be executed: `error` from execve.
std::string explain_exec_error(const std::string& name, const std::string& file, int error);

// What ptrace and seccomp can do here; each is found out once in a process, by a child that is
// traced for a moment.
struct Abilities {
    std::string why_not_traceable;  // empty: fine
    bool seccomp_trace = false;     // SECCOMP_RET_TRACE for 1091 is seen
};
const Abilities& probe_abilities(bool simulate_outer_filter);

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_LAUNCH_H_
