// SPDX-License-Identifier: MIT
//
// See program_start.h.

#include "conformance/tracer/program_start.h"

#include <unistd.h>

#include <cstring>
#include <stdexcept>

namespace kmes::conformance::tracing {

void ProgramStart::begin() {
    if (has_begun_) throw std::logic_error("Tracer::start: a Tracer starts one program");
    has_begun_ = true;
}

void ProgramStart::choose_interception(Interception wanted, bool can_filter,
                                       bool must_be_every_call) {
    interception_ = wanted;
    if (interception_ == Interception::kAutomatic)
        interception_ = can_filter ? Interception::kSeccomp : Interception::kEveryCall;
    if (must_be_every_call) interception_ = Interception::kEveryCall;
}

pid_t ProgramStart::launch() {
    launch_ = std::make_unique<Launch>(plan_);
    for (const int fd :
         {plan_.standard_input, plan_.standard_output, plan_.standard_error, plan_.report})
        close(fd);
    pid_ = launch_->pid();
    return pid_;
}

void ProgramStart::explain_failure(Ended& ended) const {
    const Launch::Failure failure = launch_->failure();
    ended.kind = EndKind::kNotStarted;
    ended.error = failure.error;
    const std::string& name = plan_.arguments[0];
    ended.text = failure.at_exec
                     ? explain_exec_error(name, plan_.candidates[failure.candidate], failure.error)
                     : name + ": could not be set up: " + strerror(failure.error);
}

}  // namespace kmes::conformance::tracing
