// SPDX-License-Identifier: MIT
//
// See orphans.h.

#include "conformance/tracer/orphans.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "conformance/tracer/proc.h"

namespace kmes::conformance::tracing {

Orphans::Orphans() {
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

void Orphans::note_end(pid_t process) {
    ended_.insert(process);
    if (ended_.size() < reap_at_) return;
    reap();
    reap_at_ = std::max(kFewEnded, 2 * ended_.size());
}

// The number may belong to another process by now. A traced one is the testee of another run, and
// only its tracer may wait for it. An untraced child that has ended is an orphan: any run may reap
// it.
void Orphans::reap() {
    const pid_t runner = getpid();
    std::erase_if(ended_, [runner](pid_t process) {
        const auto status = read_status(process);
        if (!status || status->state != 'Z' || status->tracer != 0) return true;
        if (status->parent != runner) return false;
        waitpid(process, nullptr, __WALL | WNOHANG);
        return true;
    });
}

}  // namespace kmes::conformance::tracing
