// SPDX-License-Identifier: MIT
//
// The fault at a guard is the runner's, and the testee must not see it in its signals. Where a
// thread blocks SIGSEGV, the kernel unblocks it for a fault, and takes the handler away from the
// whole process; where one that is single-stepped blocks SIGTRAP, the same with that. What a thread
// blocks is known while pages are guarded (all calls stop then), and is put back at each fault; the
// handler is put back before anything can ask for it. Knows masks and handlers, not what is
// guarded.

#include <sys/ptrace.h>
#include <sys/syscall.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "conformance/tracer/engine.h"
#include "conformance/tracer/injection.h"
#include "conformance/tracer/memory.h"

namespace kmes::conformance {
namespace {

constexpr uint64_t kNoHandler = 0;  // SIG_DFL

void change_mask(pid_t tid, uint64_t set, uint64_t clear) {
    uint64_t mask = 0;
    if (ptrace(PTRACE_GETSIGMASK, tid, sizeof mask, &mask) != 0) return;
    mask = (mask | set) & ~clear;
    ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask);
}

}  // namespace

bool Tracer::Engine::blocks(const Thread& thread, int signal_number) {
    return (thread.blocked & signal_bit(signal_number)) != 0;
}

// Of a thread that stands still. One whose fault at a guard is still pending has the signal
// unblocked: what it blocks is known from before.
void Tracer::Engine::note_mask(Thread& thread) {
    if (thread.late_guard_fault) return;
    uint64_t mask = 0;
    if (ptrace(PTRACE_GETSIGMASK, thread.tid, sizeof mask, &mask) == 0) thread.blocked = mask;
}

// To be called in a stopped thread when guards are closed or a mask or handler has changed.
void Tracer::Engine::know_fault_handler(Thread& thread) {
    Process& process = process_of(thread);
    if (stepping_ != Stepping::kGuardPages || process.fault_handler) return;
    const auto needs_it = [this](const auto& entry) {
        return is_testee(entry.second) && blocks(entry.second, SIGSEGV);
    };
    if (std::none_of(threads_.begin(), threads_.end(), needs_it)) return;
    Injection injection(*this, thread);
    if (!ensure_scratch(injection, thread)) return;
    if (injection.call(SYS_rt_sigaction, SIGSEGV, 0, process.scratch, sizeof thread.blocked) != 0)
        return;
    process.fault_handler = read_value<SignalAction>(thread.tid, process.scratch);
}

// A guard's fault has been received.
void Tracer::Engine::put_back_mask(Thread& thread) {
    if (!blocks(thread, SIGSEGV)) return;
    change_mask(thread.tid, signal_bit(SIGSEGV), 0);
    note_lost_handler(thread);
}

// It has come to a guard.
void Tracer::Engine::note_lost_handler(const Thread& thread) {
    Process& process = process_of(thread);
    if (blocks(thread, SIGSEGV) && process.fault_handler)
        process.fault_handler_is_lost = process.fault_handler->handler != kNoHandler;
}

// In a stopped thread of the testee that has no signal to get.
void Tracer::Engine::put_back_fault_handler(Thread& thread) {
    Process& process = process_of(thread);
    if (!process.fault_handler_is_lost || !process.fault_handler) return;
    Injection injection(*this, thread);
    if (!write_memory(thread.tid, process.scratch, &*process.fault_handler,
                      sizeof *process.fault_handler))
        return;
    if (injection.call(SYS_rt_sigaction, SIGSEGV, process.scratch, 0, sizeof thread.blocked) == 0)
        process.fault_handler_is_lost = false;
}

// Whether what this stopped thread does next could find the handler gone: it gets a SIGSEGV (one
// that blocks the signal dies of a fault of its own, whatever handler there is), or asks for the
// handler.
bool Tracer::Engine::needs_fault_handler(const Thread& thread) {
    if (!is_testee(thread) || !may_run(thread)) return false;
    const Process& process = process_of(thread);
    if (!process.fault_handler) return false;
    return thread.asks_for_fault_handler ||
           (process.fault_handler->handler != kNoHandler && thread.deliver_signal == SIGSEGV &&
            thread.now == StopKind::kSignal && !blocks(thread, SIGSEGV));
}

// It does that, up to the first instruction of the handler or the end of the call, while no other
// thread can come to a guard.
void Tracer::Engine::go_on_alone(Thread& thread) {
    const pid_t tid = thread.tid;
    const bool was_frozen = frozen_;
    if (!freeze_all(Clock::now() + kFreezeLimit)) return;
    note_pending_guard_faults(false);
    // Not in the thread itself, which would come out of its stop.
    if (Thread* other = injectable_thread(tid)) put_back_fault_handler(*other);
    const bool is_call = std::exchange(thread.asks_for_fault_handler, false);
    const auto request = is_call ? PTRACE_SYSCALL : PTRACE_SINGLESTEP;
    // The trap before the first instruction of the handler is the tracer's own.
    thread.is_stepping = !is_call;
    ptrace(request, tid, 0, thread.deliver_signal);
    if (const auto status = wait_for_thread(tid)) {
        Thread& behind = record({tid, *status});
        put_off(behind, *status);
        // Before another thread can make the old handler the one that is put back.
        if (behind.now == StopKind::kExit) note_signal_call_done(behind);
    }
    frozen_ = was_frozen;
    resume_ready();
}

// The trap of a step would have the same effect as a fault.
void Tracer::Engine::lift_trap(Thread& thread) {
    if (!blocks(thread, SIGTRAP)) return;
    change_mask(thread.tid, 0, signal_bit(SIGTRAP));
    thread.trap_is_lifted = true;
}

void Tracer::Engine::lower_trap(Thread& thread) {
    if (std::exchange(thread.trap_is_lifted, false))
        change_mask(thread.tid, signal_bit(SIGTRAP), 0);
}

// At the entry of a call, with guards.
void Tracer::Engine::note_signal_call(Thread& thread, long number, const uint64_t (&arguments)[6]) {
    const bool is_about_handler =
        number == SYS_rt_sigaction && static_cast<int>(arguments[0]) == SIGSEGV;
    // A child has the handlers of its parent.
    thread.asks_for_fault_handler = is_about_handler || number == SYS_clone ||
                                    number == SYS_clone3 || number == SYS_fork ||
                                    number == SYS_vfork;
    thread.changes_fault_handler = is_about_handler && arguments[1] != 0;
    thread.changes_signals =
        thread.changes_fault_handler || number == SYS_rt_sigprocmask || number == SYS_rt_sigreturn;
}

// At its exit.
void Tracer::Engine::note_signal_call_done(Thread& thread) {
    thread.asks_for_fault_handler = false;
    if (!std::exchange(thread.changes_signals, false)) return;
    note_mask(thread);
    if (std::exchange(thread.changes_fault_handler, false)) {
        process_of(thread).fault_handler.reset();
        process_of(thread).fault_handler_is_lost = false;
    }
    know_fault_handler(thread);
}

}  // namespace kmes::conformance
