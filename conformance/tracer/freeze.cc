// SPDX-License-Identifier: MIT
//
// Stops all threads of the testee at once without losing a stop: stops that arrive meanwhile are
// kept for later. Knows ptrace's interrupts, not the activities of threads.

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
    if (tracees_.testee() == 0) return false;
    if (tracees_.is_frozen()) return true;
    const auto runs = [&](const auto& entry) {
        return is_testee(entry.second) && !entry.second.stopped && !entry.second.is_zombie;
    };
    auto& threads = tracees_.threads();
    for (auto& [tid, thread] : threads) {
        // ESRCH: the thread is ending. If the thread is at another stop first, the interrupt stays
        // pending and arrives later, as a meaningless stop.
        if (is_testee(thread) && !thread.stopped) ptrace(PTRACE_INTERRUPT, tid, 0, 0);
    }
    tracees_.set_frozen(true);
    ++effects_.freezes;
    Patience patience(deadline - Clock::now());
    bool is_asked_to_end = false;
    while (std::any_of(threads.begin(), threads.end(), runs)) {
        // (Other processes of the run may stop again and again meanwhile.)
        if (is_asked_to_end || stops_.is_childless() ||
            patience.is_over(tracees_.testee_threads())) {
            tracees_.set_frozen(false);
            resume_frozen();
            return false;
        }
        // A parent in vfork stops when its child continues, and the child's stop may be in the
        // backlog.
        if (handle_backlog()) continue;
        const auto received = stops_.receive(Clock::now() + kStep);
        if (!received) {
            is_asked_to_end = is_interrupted();
            find_zombies();
            resume_lost_threads();
            continue;
        }
        Thread& thread = record(*received);
        if (!WIFSTOPPED(received->status) || !is_testee(thread)) {
            handle(received->tid, received->status);
            continue;
        }
        // This stop was requested, so there is nothing to report, unless the thread was just born.
        if (thread.received == StopKind::kInterrupt && !thread.is_new) continue;
        if (thread.received == StopKind::kKernelEvent) note_new_thread(thread);
        stops_.put_off(thread, received->status);
    }
    return !end_.is_over();
}

// A leader that ended before its threads gives no status until they have ended too.
void Tracer::Engine::find_zombies() {
    for (auto& [tid, thread] : tracees_.threads()) {
        if (thread.stopped || !is_testee(thread)) continue;
        const auto status = read_status(tid);
        thread.is_zombie = !status || status->state == 'Z' || status->state == 'X';
    }
}

// A thread that is being created must be waited for as well, even if its first stop comes late.
void Tracer::Engine::note_new_thread(const Thread& parent) {
    unsigned long message = 0;
    if (parent.status >> 16 == PTRACE_EVENT_EXEC ||
        ptrace(PTRACE_GETEVENTMSG, parent.tid, 0, &message) != 0)
        return;
    const auto child = static_cast<pid_t>(message);
    const auto status = read_status(child);
    if (!status || status->process != parent.process || find(child) != nullptr) return;
    add_thread(child, status->process);
}

// After a failed freeze, resumes at once the threads that it stopped.
void Tracer::Engine::resume_frozen() {
    for (auto& [tid, thread] : tracees_.threads()) {
        if (is_testee(thread) && thread.now == StopKind::kInterrupt && tracees_.may_run(thread))
            resume(thread);
    }
}

}  // namespace kmes::conformance
