// SPDX-License-Identifier: MIT
//
// Stops all threads of the testee at once without losing a stop: what arrives meanwhile is kept for
// later. Knows ptrace's interrupts, not what threads do.

#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>

#include "conformance/tracer/engine.h"
#include "conformance/tracer/patience.h"

namespace kmes::conformance {
namespace {

constexpr auto kStep = std::chrono::milliseconds(20);

}  // namespace

bool Tracer::Engine::freeze_all(TimePoint deadline) {
    if (testee_ == 0) return false;
    if (frozen_) return true;
    const auto runs = [&](const auto& entry) {
        return is_testee(entry.second) && !entry.second.stopped && !entry.second.is_zombie;
    };
    for (auto& [tid, thread] : threads_) {
        // ESRCH: the thread is ending. If the thread is at another stop first, the interrupt stays
        // pending and arrives later, as a meaningless stop.
        if (is_testee(thread) && !thread.stopped) ptrace(PTRACE_INTERRUPT, tid, 0, 0);
    }
    frozen_ = true;
    ++freezes_;
    Patience patience(deadline - Clock::now());
    while (std::any_of(threads_.begin(), threads_.end(), runs)) {
        // A parent in vfork stops when its child continues, and the child's stop may be in the
        // backlog.
        if (handle_backlog()) continue;
        const auto received = receive(Clock::now() + kStep);
        if (!received) {
            find_zombies();
            revive_lost_threads();
            if (!patience.is_over(testee_threads()) && !nothing_to_wait_for_) continue;
            frozen_ = false;
            resume_frozen();
            return false;
        }
        Thread& thread = record(*received);
        if (!WIFSTOPPED(received->status) || !is_testee(thread)) {
            handle(received->tid, received->status);
            continue;
        }
        // This stop was requested, so there is nothing to report, unless the thread was just born.
        if (thread.received == StopKind::kInterrupt && !thread.is_new) continue;
        if (thread.received == StopKind::kKernelEvent) note_new_thread(thread);
        put_off(thread, received->status);
    }
    return !ended_;
}

// A leader that ended before its threads gives no status until they have ended too.
void Tracer::Engine::find_zombies() {
    for (auto& [tid, thread] : threads_) {
        if (thread.stopped || !is_testee(thread)) continue;
        const auto status = read_status(tid);
        thread.is_zombie = !status || status->state == 'Z' || status->state == 'X';
    }
}

// A thread that is being born must be waited for as well, even if its first stop comes late.
void Tracer::Engine::note_new_thread(const Thread& parent) {
    unsigned long message = 0;
    if (parent.status >> 16 == PTRACE_EVENT_EXEC ||
        ptrace(PTRACE_GETEVENTMSG, parent.tid, 0, &message) != 0)
        return;
    const auto child = static_cast<pid_t>(message);
    const auto status = read_status(child);
    if (!status || status->process != parent.process || threads_.count(child) != 0) return;
    add_thread(child, status->process);
}

// After a failed freeze: resumes at once the threads that it stopped, because the runner got
// nothing.
void Tracer::Engine::resume_frozen() {
    for (auto& [tid, thread] : threads_) {
        if (is_testee(thread) && thread.now == StopKind::kInterrupt && may_run(thread))
            resume(thread);
    }
}

}  // namespace kmes::conformance
