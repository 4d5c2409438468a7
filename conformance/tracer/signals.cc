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
//   it runs its program                     SIGSEGV is unblocked; ThreadMask has the truth
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
// The tracer emulates what the testee would notice. A SIGSEGV that is sent to a thread that blocks
// it is kept until the next system call, where it becomes pending. If the testee itself faults in a
// thread that blocks SIGSEGV, the process ends, whatever its handler.
//
// One state remains. If a signal interrupts a call with a mask of its own, and another thread takes
// the signal, the call returns EINTR. The thread then runs with its own mask until its next stop. A
// guard that it meets there is noticed, and the run is inconclusive.
//
// For one step, the same rules apply to SIGTRAP. Knows masks and signals, not the guards.

#include <sys/ptrace.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "conformance/tracer/engine.h"
#include "conformance/tracer/memory.h"
#include "conformance/tracer/traced_calls.h"

namespace kmes::conformance {
namespace {

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

constexpr uint64_t kSignalSetBytes = 8;  // of the kernel

bool is_sent(const siginfo_t& info) {
    return info.si_code <= 0;
}

}  // namespace

// Call it before a thread executes an instruction that may meet a guard.
void Tracer::Engine::prepare_for_faults(Thread& thread) {
    if (!is_testee(thread)) return;
    thread.mask.note(thread.tid);
    if (stepping_.uses_pages() && mappings_.any_guards())
        thread.mask.unblock_fault(thread.tid, true);
}

// The kernel will restore the first of two masks; PTRACE_SETSIGMASK would prevent that. Returns
// false for a thread whose mask need not be changed.
bool Tracer::Engine::is_in_masked_call(Thread& thread) {
    if (thread.now != StopKind::kExit || !is_testee(thread) || !mappings_.any_guards())
        return false;
    thread.mask.note(thread.tid);
    if (!thread.mask.blocks(SIGSEGV) && !thread.mask.blocks(SIGTRAP)) return false;
    const auto registers = read_registers(thread.tid);
    if (!registers || !takes_mask(call_number_of(*registers))) return false;
    const auto result = static_cast<int64_t>(registers->rax);
    return is_restart_code(result) || result == -EINTR ||
           call_number_of(*registers) == SYS_io_pgetevents;
}

// Whether the thread continues in a handler. If the testee ignores the signal, it does not.
bool Tracer::Engine::takes_signal(const Thread& thread) const {
    return thread.now == StopKind::kSignal && thread.signal.deliver != 0 && is_testee(thread) &&
           mappings_.any_guards();
}

// Sets the mask that the state of a stopped thread needs, before it resumes. Returns false if the
// thread does not execute an instruction of its program next, and so must not be stepped.
bool Tracer::Engine::settle_signals(Thread& thread) {
    const bool has_guards = mappings_.any_guards();
    if (!is_testee(thread) || thread.now == StopKind::kNone) return true;
    if (!has_guards && !thread.mask.fault_is_unblocked() && !thread.signal.kept) return true;
    thread.mask.note(thread.tid);
    if (is_in_masked_call(thread)) return false;
    const bool gets_signal = takes_signal(thread);
    const bool is_in_call = thread.now == StopKind::kEntry || thread.now == StopKind::kKernelEvent;
    const bool dies =
        gets_signal && thread.signal.deliver == SIGSEGV && thread.mask.blocks(SIGSEGV);
    const bool runs_freely = !is_in_call && !gets_signal;
    const bool meets_guards = has_guards && stepping_.uses_pages();
    if (!dies)
        thread.mask.unblock_fault(thread.tid,
                                  runs_freely && (meets_guards || thread.guard.is_late_fault));
    // Stop it again before the first instruction of the handler.
    if (gets_signal) ptrace(PTRACE_INTERRUPT, thread.tid, 0, 0);
    // A signal passed to a system call stop is sent anew, and stays pending if it is blocked.
    const bool is_at_call = is_in_call || thread.now == StopKind::kExit;
    if (thread.signal.kept && is_at_call && WSTOPSIG(thread.status) == (SIGTRAP | 0x80) &&
        !thread.mask.fault_is_unblocked() && thread.signal.deliver == 0) {
        thread.signal.info = *std::exchange(thread.signal.kept, std::nullopt);
        thread.signal.deliver = SIGSEGV;
    }
    return runs_freely;
}

// Handles a SIGSEGV that another thread or process has sent to a thread that blocks it. If it was
// sent to the process, another thread may take it. Otherwise it stays pending.
bool Tracer::Engine::keep_sent_fault(Thread& thread) {
    if (!thread.mask.fault_is_unblocked() || !is_sent(thread.signal.info)) return false;
    thread.signal.deliver = 0;
    const auto takes_it = [this](const auto& entry) {
        const Thread& other = entry.second;
        return is_testee(other) && !other.is_zombie && !other.mask.blocks(SIGSEGV) &&
               !other.signal.replay;
    };
    auto& threads = tracees_.threads();
    const auto other = std::find_if(threads.begin(), threads.end(), takes_it);
    if (thread.signal.info.si_code == SI_USER && other != threads.end() &&
        syscall(SYS_tgkill, thread.process, other->first, SIGSEGV) == 0) {
        other->second.signal.replay = thread.signal.info;
        return true;
    }
    thread.signal.kept = thread.signal.info;
    return true;
}

// The testee itself faults in a thread that blocks SIGSEGV. Resets the handler, as the kernel does
// then.
void Tracer::Engine::take_fault_handler(Thread& thread) {
    if (!thread.mask.fault_is_unblocked()) return;
    Injection injection(*this, thread);
    const SignalAction none{};
    if (!ensure_scratch(injection, thread) ||
        !write_memory(thread.tid, process_of(thread).scratch, &none, sizeof none))
        return;
    injection.call(SYS_rt_sigaction, SIGSEGV, process_of(thread).scratch, 0, kSignalSetBytes);
}

// A guard's fault has been received. If the thread blocked SIGSEGV nevertheless, the kernel has
// unblocked it, and has reset the handler.
void Tracer::Engine::note_guard_fault(Thread& thread) {
    if (!thread.mask.blocks(SIGSEGV) || thread.mask.fault_is_unblocked()) return;
    thread.mask.note_unblocked_fault();
    push(TracerTrouble{.tid = thread.tid,
                       .what = "a thread that blocks SIGSEGV accessed a guarded page, and the "
                               "kernel reset the testee's SIGSEGV handler, so its behaviour is no "
                               "longer its own. Run the case again, or with --stepper single-step",
                       .reason = TracerTrouble::Reason::not_followed});
}

}  // namespace kmes::conformance
