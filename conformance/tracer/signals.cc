// SPDX-License-Identifier: MIT
//
// The fault at a guard belongs to the runner. The testee must not see it in its signals.
//
// If a thread that blocks SIGSEGV faults, the kernel sets the handler of the whole process to
// SIG_DFL (force_sig_info_to_task), before a tracer sees a stop. From then on a fault of another
// thread kills the program, rt_sigaction shows the wrong handler, and a child inherits it. No
// repair can close that window, so it must not open. While pages are guarded, no thread of the
// testee blocks SIGSEGV while it executes its own instructions, whatever its mask says. The kernel
// then never touches the handler, and the tracer need not remember one.
//
// The testee still sees the mask that it has set. These are the states of a thread, and the mask
// that the kernel has for it in each:
//
//   it runs its program                     SIGSEGV is unblocked; Thread::blocked has the truth
//   before and in a system call             the testee's own: sigprocmask, ppoll, sigsuspend,
//   clone,
//                                           fork, vfork and execve read it, sigreturn sets it
//   after a system call                     SIGSEGV is unblocked again
//   after a call with a mask of its own     unchanged: the kernel still has two masks, and the
//   that a signal has interrupted           signal that follows needs the first
//   a signal is about to be delivered       the testee's own, which goes into the signal's frame;
//                                           the thread is interrupted before the first instruction
//                                           of the handler, and SIGSEGV is unblocked there
//   its first stop (thread, child)          inherited from the call: the testee's own
//   it has faulted at a guard that is gone  unblocked until that fault has been received
//
// The tracer emulates what the testee would notice. A SIGSEGV that somebody sends to a thread that
// blocks it is kept until the next system call, where it becomes pending. If the testee itself
// faults in a thread that blocks SIGSEGV, the process ends, whatever its handler.
//
// One state remains. If a signal interrupts a call with a mask of its own, and another thread takes
// the signal, the call returns EINTR. The thread then runs with its own mask until its next stop. A
// guard that it meets there is noticed, and the run is inconclusive.
//
// For one step, the same rules apply to SIGTRAP. Knows masks and signals, not what is guarded.

#include <sys/ptrace.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "conformance/tracer/engine.h"
#include "conformance/tracer/injection.h"
#include "conformance/tracer/interest.h"
#include "conformance/tracer/memory.h"

namespace kmes::conformance {
namespace {

void change_mask(pid_t tid, uint64_t set, uint64_t clear) {
    uint64_t mask = 0;
    if (ptrace(PTRACE_GETSIGMASK, tid, sizeof mask, &mask) != 0) return;
    mask = (mask | set) & ~clear;
    ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask);
}

// Calls with a signal mask for their duration.
bool takes_mask(long number) {
    switch (number) {
        case SYS_rt_sigsuspend:
        case SYS_ppoll:
        case SYS_pselect6:
        case SYS_epoll_pwait:
        case SYS_epoll_pwait2:
        case SYS_io_pgetevents:
            return true;
        default:
            return false;
    }
}

bool is_sent(const siginfo_t& info) {
    return info.si_code <= 0;
}

}  // namespace

bool Tracer::Engine::blocks(const Thread& thread, int signal_number) {
    return (thread.blocked & signal_bit(signal_number)) != 0;
}

// Records the mask of a stopped thread as the testee has set it.
void Tracer::Engine::note_mask(Thread& thread) {
    uint64_t mask = 0;
    if (ptrace(PTRACE_GETSIGMASK, thread.tid, sizeof mask, &mask) != 0) return;
    thread.blocked = mask | (thread.fault_is_unblocked ? signal_bit(SIGSEGV) : 0);
}

// Removes SIGSEGV from the kernel's mask of the thread, or restores it. Does nothing if the testee
// does not block it.
void Tracer::Engine::unblock_fault(Thread& thread, bool unblock) {
    const bool is_blocked = blocks(thread, SIGSEGV);
    const bool was_unblocked = std::exchange(thread.fault_is_unblocked, unblock && is_blocked);
    if (!is_blocked || was_unblocked == unblock) return;
    const uint64_t mask = thread.blocked & ~(unblock ? signal_bit(SIGSEGV) : 0);
    ptrace(PTRACE_SETSIGMASK, thread.tid, sizeof mask, &mask);
}

// Call it before a thread executes an instruction that may meet a guard.
void Tracer::Engine::prepare_for_faults(Thread& thread) {
    if (!is_testee(thread)) return;
    note_mask(thread);
    if (stepping_ == Stepping::kGuardPages && any_guards()) unblock_fault(thread, true);
}

// The kernel will restore the first of two masks; PTRACE_SETSIGMASK would prevent that. Returns
// false for a thread whose mask need not be changed.
bool Tracer::Engine::is_in_masked_call(Thread& thread) {
    if (thread.now != StopKind::kExit || !is_testee(thread) || !any_guards()) return false;
    note_mask(thread);
    if (!blocks(thread, SIGSEGV) && !blocks(thread, SIGTRAP)) return false;
    const auto registers = read_registers(thread.tid);
    if (!registers || !takes_mask(call_number_of(*registers))) return false;
    const auto result = static_cast<int64_t>(registers->rax);
    return is_restart_code(result) || result == -EINTR ||
           call_number_of(*registers) == SYS_io_pgetevents;
}

// Whether the thread continues in a handler. If the testee ignores the signal, it does not.
bool Tracer::Engine::takes_signal(const Thread& thread) const {
    return thread.now == StopKind::kSignal && thread.deliver_signal != 0 && is_testee(thread) &&
           any_guards();
}

// Sets the mask that the state of a stopped thread needs, before it resumes. Returns false if the
// thread does not execute an instruction of its program next, and so must not be stepped.
bool Tracer::Engine::settle_signals(Thread& thread) {
    const bool has_guards = any_guards();
    if (!is_testee(thread) || thread.now == StopKind::kNone) return true;
    if (!has_guards && !thread.fault_is_unblocked && !thread.kept_signal) return true;
    note_mask(thread);
    if (is_in_masked_call(thread)) return false;
    const bool gets_signal = takes_signal(thread);
    const bool is_in_call = thread.now == StopKind::kEntry || thread.now == StopKind::kKernelEvent;
    const bool dies = gets_signal && thread.deliver_signal == SIGSEGV && blocks(thread, SIGSEGV);
    const bool runs_freely = !is_in_call && !gets_signal;
    const bool meets_guards = has_guards && stepping_ == Stepping::kGuardPages;
    if (!dies) unblock_fault(thread, runs_freely && (meets_guards || thread.late_guard_fault));
    // Stop it again before the first instruction of the handler.
    if (gets_signal) ptrace(PTRACE_INTERRUPT, thread.tid, 0, 0);
    // A signal passed to a system call stop is sent anew, and stays pending if it is blocked.
    const bool is_at_call = is_in_call || thread.now == StopKind::kExit;
    if (thread.kept_signal && is_at_call && WSTOPSIG(thread.status) == (SIGTRAP | 0x80) &&
        !thread.fault_is_unblocked && thread.deliver_signal == 0) {
        thread.signal_info = *std::exchange(thread.kept_signal, std::nullopt);
        thread.deliver_signal = SIGSEGV;
    }
    return runs_freely;
}

// A thread that has blocked SIGSEGV gets one that somebody has sent. If it was for the process,
// another thread may take it; else it stays pending.
bool Tracer::Engine::keep_sent_fault(Thread& thread) {
    if (!thread.fault_is_unblocked || !is_sent(thread.signal_info)) return false;
    thread.deliver_signal = 0;
    const auto takes_it = [this](const auto& entry) {
        const Thread& other = entry.second;
        return is_testee(other) && !other.is_zombie && !blocks(other, SIGSEGV) && !other.replay;
    };
    const auto other = std::find_if(threads_.begin(), threads_.end(), takes_it);
    if (thread.signal_info.si_code == SI_USER && other != threads_.end() &&
        syscall(SYS_tgkill, thread.process, other->first, SIGSEGV) == 0) {
        other->second.replay = thread.signal_info;
        return true;
    }
    thread.kept_signal = thread.signal_info;
    return true;
}

// The testee itself faults in a thread that blocks SIGSEGV: does what the kernel does then.
void Tracer::Engine::take_fault_handler(Thread& thread) {
    if (!thread.fault_is_unblocked) return;
    Injection injection(*this, thread);
    const SignalAction none{};
    if (!ensure_scratch(injection, thread) ||
        !write_memory(thread.tid, process_of(thread).scratch, &none, sizeof none))
        return;
    injection.call(SYS_rt_sigaction, SIGSEGV, process_of(thread).scratch, 0, sizeof thread.blocked);
}

// A guard's fault has been received. If the thread blocked SIGSEGV nevertheless, the kernel has
// unblocked it, and has reset the handler.
void Tracer::Engine::note_guard_fault(Thread& thread) {
    if (!blocks(thread, SIGSEGV) || thread.fault_is_unblocked) return;
    thread.fault_is_unblocked = true;
    push(TracerTrouble{.tid = thread.tid,
                       .what = "a thread that blocks SIGSEGV accessed a guarded page, and the "
                               "kernel reset the testee's SIGSEGV handler, so its behaviour is no "
                               "longer its own. Run the case again, or with --stepper single-step",
                       .reason = TracerTrouble::Reason::not_followed});
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

}  // namespace kmes::conformance
