// SPDX-License-Identifier: MIT
//
// Finds threads that are stopped although neither the tracer nor the runner holds them. Either a
// stop was lost between this tracer and the kernel, or a resume had no effect. That has never been
// seen, but it would look as if the testee hung. Therefore such a thread is resumed again. If that
// is impossible, the suite reports trouble of its own. Knows the threads' records, not the
// activities of threads.

#include <sys/wait.h>

#include "conformance/tracer/engine.h"

namespace kmes::conformance {

bool Tracer::Engine::is_in_a_stop(pid_t tid) {
    const auto status = read_status(tid);
    return status && status->state == 't';
}

// Checks every thread from time to time. All received stops must have been recorded. A thread is
// lost if it is stopped, has no stop to receive, and is recorded as running.
void Tracer::Engine::resume_lost_threads() {
    if (end_.is_over() || Clock::now() < next_search_for_lost_stops_) return;
    next_search_for_lost_stops_ = Clock::now() + kLostStopInterval;
    for (auto& [tid, thread] : tracees_.threads()) {
        if (thread.is_zombie || thread.is_in_group_stop) continue;
        if (thread.stopped) {
            if (tracees_.is_frozen() || thread.held || tracees_.may_run(thread)) continue;
            push(TracerTrouble{tid, "a stop of the testee was not reported: " +
                                        std::to_string(thread.queued_events) + " events, " +
                                        (thread.in_backlog ? "in the backlog" : "handled")});
            continue;
        }
        if (!is_in_a_stop(tid)) continue;
        // The thread may have stopped just now.
        int status = 0;
        if (waitpid(tid, &status, __WALL | __WNOTHREAD | WNOHANG) == tid) {
            stops_.put_off(record({tid, status}), status);
            return;
        }
        ++effects_.lost_stops;
        thread.stopped = true;
        resume(thread);
    }
}

}  // namespace kmes::conformance
