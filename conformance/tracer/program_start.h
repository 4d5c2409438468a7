// SPDX-License-Identifier: MIT
//
// The first process of a run, from its plan to its end, and the interception of its calls. Knows
// launches, no stops.

#ifndef CONFORMANCE_TRACER_PROGRAM_START_H_
#define CONFORMANCE_TRACER_PROGRAM_START_H_

#include <sys/types.h>

#include <memory>
#include <string>

#include "conformance/tracer/events.h"
#include "conformance/tracer/launch.h"
#include "conformance/tracer/tracer.h"

namespace kmes::conformance::tracing {

class ProgramStart {
  public:
    // Records the attempt. Throws std::logic_error at the second one.
    void begin();
    bool has_begun() const { return has_begun_; }
    // `can_filter`: a filter of the tracer works here. `must_be_every_call`: see TracerHandlers.
    void choose_interception(Interception wanted, bool can_filter, bool must_be_every_call);
    // kAutomatic before that.
    Interception interception() const { return interception_; }

    // The plan of the launch, to be filled before it.
    LaunchPlan& plan() { return plan_; }
    // Makes the process, which waits. Closes the descriptors of the plan. Returns its number.
    // Throws std::system_error if no descriptor or no process is available.
    pid_t launch();
    // Call it after the process has been seized: it sets itself up and executes.
    void let_go() { launch_->let_go(); }
    // The number of the process; 0 before the launch.
    pid_t pid() const { return pid_; }

    void note_exec() { has_executed_ = true; }
    bool has_executed() const { return has_executed_; }
    void note_end(int status) { end_status_ = status; }
    int end_status() const { return end_status_; }
    // Call it after the process has ended without executing: says why.
    void explain_failure(Ended& ended) const;

  private:
    bool has_begun_ = false;
    Interception interception_ = Interception::kAutomatic;
    bool has_executed_ = false;  // the first execve has happened
    pid_t pid_ = 0;
    int end_status_ = 0;
    LaunchPlan plan_;
    std::unique_ptr<Launch> launch_;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_PROGRAM_START_H_
