// SPDX-License-Identifier: MIT
//
// A thread that stands still although nobody holds it: its stop was lost, between this tracer and
// the kernel, or it was let go and did not go. That has not been seen; it would look as if the
// testee hung, so such a thread is let go again, and where that cannot be, the suite says that the
// trouble is its own. Knows the threads' records, not what threads do.

#include <sys/wait.h>

#include "conformance/tracer/engine.h"

namespace kmes::conformance {

bool Tracer::Engine::stands_in_a_stop(pid_t tid) {
    const auto status = read_status(tid);
    return status && status->state == 't';
}

// Looks at every thread, now and then. Everything that was received must have been recorded: what
// stands in a stop, has none to be received, and is believed to run, was lost.
void Tracer::Engine::revive_lost_threads() {
    if (ended_ || Clock::now() < next_revival_) return;
    next_revival_ = Clock::now() + kRevivalInterval;
    for (auto& [tid, thread] : threads_) {
        if (thread.is_zombie || thread.is_in_group_stop) continue;
        if (thread.stopped) {
            if (frozen_ || thread.held || may_run(thread)) continue;
            push(TracerTrouble{tid, "a stop of the testee was not reported: " +
                                        std::to_string(thread.queued_events) + " events, " +
                                        (thread.in_backlog ? "in the backlog" : "handled")});
            continue;
        }
        if (!stands_in_a_stop(tid)) continue;
        // It may have stopped just now.
        int status = 0;
        if (waitpid(tid, &status, __WALL | __WNOTHREAD | WNOHANG) == tid) {
            put_off(record({tid, status}), status);
            return;
        }
        ++lost_stops_;
        thread.stopped = true;
        resume(thread);
    }
}

}  // namespace kmes::conformance
