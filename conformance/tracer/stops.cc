// SPDX-License-Identifier: MIT
//
// Classifies each stop or end of a thread, and calls its handler. Handlers change the thread's
// record and push events; they never resume it. Knows the order of ptrace's stops, not what buffers
// are.

#include <sched.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <string>
#include <utility>

#include "conformance/tracer/engine.h"
#include "conformance/tracer/limited_access.h"
#include "conformance/tracer/memory.h"
#include "conformance/tracer/traced_calls.h"

namespace kmes::conformance {
namespace {

constexpr uint64_t kCallInstructionBytes = 2;
constexpr size_t kMostProcesses = 500;  // of a run, so that some are left for the machine
constexpr uint64_t kNoCallToRestart =
    ~uint64_t{0};  // orig_rax if there is no system call, as after sigreturn

bool is_fatal_synchronous(int signal_number) {
    switch (signal_number) {
        case SIGSEGV:
        case SIGBUS:
        case SIGILL:
        case SIGFPE:
        case SIGABRT:
        case SIGTRAP:
        case SIGSYS:
            return true;
        default:
            return false;
    }
}

// Whether the stop is the trap after a stepped instruction, or before the first one of a signal
// handler. (About one in 100,000 lacks the code of a step. int3 has another code.)
bool is_own_step(const Thread& thread) {
    const siginfo_t& info = thread.signal.info;
    if (info.si_signo != SIGTRAP) return false;
    // An interrupt can come before the trap. The trap is then reported after the thread was resumed
    // without a step.
    if (thread.step.was_stepped && info.si_code == TRAP_TRACE) return true;
    return thread.step.is_stepping &&
           (info.si_code == TRAP_TRACE || info.si_code == TRAP_BRKPT || info.si_code == SIGTRAP);
}

// The flags are the first member of the structure. It may be in memory that only a tracer can
// write.
void trace_child_of_clone3(pid_t tid, uint64_t address) {
    const auto flags = read_value<uint64_t>(tid, address);
    if (!flags || (*flags & CLONE_UNTRACED) == 0) return;
    const LimitedAccess limited;
    ptrace(PTRACE_POKEDATA, tid, address, *flags & ~uint64_t{CLONE_UNTRACED});
}

}  // namespace

void Tracer::Engine::classify(Thread& thread) {
    thread.mask.lower_trap(thread.tid);
    const int signal_number = WSTOPSIG(thread.status);
    StopKind kind = StopKind::kSignal;
    switch (thread.status >> 16) {
        case PTRACE_EVENT_SECCOMP:
            kind = StopKind::kEntry;
            break;
        case PTRACE_EVENT_CLONE:
        case PTRACE_EVENT_FORK:
        case PTRACE_EVENT_VFORK:
        case PTRACE_EVENT_EXEC:
            kind = StopKind::kKernelEvent;
            break;
        case PTRACE_EVENT_STOP:
            kind = signal_number == SIGTRAP ? StopKind::kInterrupt : StopKind::kGroup;
            break;
        default:
            break;
    }
    if (thread.status >> 16 == 0 && signal_number == (SIGTRAP | 0x80)) {
        __ptrace_syscall_info info{};
        ptrace(PTRACE_GET_SYSCALL_INFO, thread.tid, sizeof info, &info);
        kind = info.op == PTRACE_SYSCALL_INFO_ENTRY ? StopKind::kEntry : StopKind::kExit;
        if (kind == StopKind::kExit) thread.call_result = info.exit.rval;
    }
    thread.guard.is_fault = false;
    if (kind == StopKind::kSignal) {
        // Fails if another thread's signal has ended the process since: no signal at all, then.
        if (ptrace(PTRACE_GETSIGINFO, thread.tid, 0, &thread.signal.info) != 0)
            thread.signal.info = {};
        if (is_testee(thread) && signal_number == SIGSEGV) {
            // (If a guard is there again, the fault is no longer late.)
            const bool was_late = std::exchange(thread.guard.is_late_fault, false);
            thread.guard.is_fault = was_late || is_at_guard(thread.signal.info);
            if (thread.guard.is_fault) note_guard_fault(thread);
        }
    }
    thread.received = thread.now = kind;
    thread.signal.deliver = 0;
}

void Tracer::Engine::handle(pid_t tid, int status) {
    if (!WIFSTOPPED(status)) {
        handle_gone(tid, status);
        return;
    }
    Thread* thread = find(tid);
    if (thread == nullptr) return;
    switch (thread->received) {
        case StopKind::kEntry:
            handle_entry(*thread);
            break;
        case StopKind::kExit:
            handle_exit(*thread);
            break;
        case StopKind::kSignal:
            handle_signal(*thread);
            break;
        case StopKind::kKernelEvent:
            if (thread->status >> 16 == PTRACE_EVENT_EXEC) {
                handle_exec(*thread);
            } else {
                handle_child(*thread);
            }
            break;
        case StopKind::kInterrupt:
            first_stop(*thread);
            break;
        case StopKind::kGroup:
            note_group_stop(*thread);
            break;
        case StopKind::kNone:
            break;
    }
    thread = find(tid);
    if (thread != nullptr && tracees_.may_run(*thread)) resume(*thread);
}

void Tracer::Engine::handle_entry(Thread& thread) {
    auto registers = read_registers(thread.tid);
    if (!registers) return;
    if (thread.call.entry_handled) {
        // The filter's own stop of a call that has been handled. A guard may have been set in
        // between.
        if (is_testee(thread) && mappings_.any_guards()) pointers_.redirect(thread, *registers);
        return;
    }
    // In seccomp mode a stop of PTRACE_SYSCALL comes before the filter's own, which then reports
    // nothing new.
    thread.call.entry_handled = thread.status >> 16 != PTRACE_EVENT_SECCOMP;
    const bool is_repeated = std::exchange(thread.call.reissued, false);
    const auto number = call_number_of(*registers);
    uint64_t arguments[6];
    arguments_of(*registers, arguments);
    process_of(thread).syscall_instruction = registers->rip - kCallInstructionBytes;
    if (number == SYS_restart_syscall && thread.call.wait && mappings_.any_guards()) {
        pointers_.restart_wait_afresh(thread, *registers);
        return;
    }
    if (handlers_.call && !is_repeated && is_testee(thread)) handlers_.call(thread.tid, number);
    if (handlers_.report_write && !is_repeated) watch_report_write(thread, number, arguments);
    if (is_traced_call(number, arguments, options_.report_futex)) {
        if (number == kAttachCallNumber) {
            serve_attach(thread, *registers);
            return;
        }
        if (number == SYS_exit_group && is_testee(thread)) end_.note_exit_call(thread.tid);
        if (wants_strict_mode(number, arguments)) note_strict_mode(thread);
        thread.call.makes_task = makes_task(number);
        if (number == SYS_clone) {
            // LeakSanitizer's helper requests that. Untraced, it would get ENOSYS for every
            // filtered call.
            registers->rdi &= ~uint64_t{CLONE_UNTRACED};
            write_registers(thread.tid, *registers);
        }
        if (number == SYS_clone3) trace_child_of_clone3(thread.tid, arguments[0]);
        if (number == SYS_sched_setaffinity && is_testee(thread)) {
            const pid_t tid = arguments[0] == 0 ? thread.tid : static_cast<pid_t>(arguments[0]);
            if (find(tid) != nullptr) processor_.note_own_processors(tid);
        }
        if (number == SYS_mmap && is_testee(thread) && (arguments[2] & PROT_EXEC) != 0)
            code_.forget();
        if (number == SYS_mmap && is_testee(thread) && serve_map(thread, *registers)) return;
        if (number == SYS_mprotect && is_testee(thread) && serve_protect(thread, *registers))
            return;
        if (is_testee(thread)) note_removal(thread, *registers, number, arguments);
        if (is_testee(thread) && !is_repeated) watch_futex(thread, *registers);
    }
    if (is_testee(thread) && mappings_.any_guards()) pointers_.redirect(thread, *registers);
}

// The filter of the tracer excludes the strict mode, and without the filter the tracer's calls
// would kill the thread.
void Tracer::Engine::note_strict_mode(Thread& thread) {
    push(thread, TracerTrouble{.tid = thread.tid,
                               .what = "a thread asks for the strict mode of seccomp, in which the "
                                       "suite cannot follow it",
                               .reason = TracerTrouble::Reason::not_followed});
}

// For each call: it may remove mappings of buffers, or other memory of the testee.
void Tracer::Engine::note_removal(Thread& thread, const user_regs_struct& registers, long number,
                                  const uint64_t (&arguments)[6]) {
    const bool is_mapped_over = number == SYS_mmap && (arguments[3] & MAP_FIXED) != 0;
    const uint64_t address = arguments[0];
    const uint64_t length_bytes = arguments[1];
    if (number != SYS_munmap && number != SYS_mremap && !is_mapped_over) return;
    const bool is_of_buffer = mappings_.overlaps(address, length_bytes);
    const char* call = number == SYS_munmap ? "munmap" : is_mapped_over ? "mmap" : "mremap";
    // (The kernel refuses any other address.)
    if ((is_of_buffer || !is_mapped_over) && address % kPageBytes == 0 && length_bytes != 0)
        mappings_.removals().add(
            {thread.tid, call, address, length_bytes, site_with_stack(thread, registers)});
    if (!is_of_buffer) return;
    mappings();  // forgets what has been unmapped unnoticed
    if (number == SYS_mremap && mappings_.at(address) != nullptr)
        push(TracerTrouble{.tid = thread.tid,
                           .what = "the testee moves the mapping of a buffer (mremap), "
                                   "which the suite does not follow",
                           .reason = TracerTrouble::Reason::not_followed});
    mappings_.note_unmap(address, length_bytes);
}

void Tracer::Engine::handle_exit(Thread& thread) {
    thread.call.entry_handled = false;
    if (std::exchange(thread.call.makes_task, false)) note_refused_task(thread);
    if (thread.call.redirect) {
        if (auto registers = read_registers(thread.tid)) {
            pointers_.undo(thread, *registers);
            write_registers(thread.tid, *registers);
        }
    }
    if (!thread.call.wait) return;
    if (!thread.call.wait->interrupted) {
        if (is_restart_code(thread.call_result)) {
            thread.call.wait->interrupted = true;
        } else {
            end_futex_wait(thread, thread.call_result);
        }
        return;
    }
    // Between an interrupted wait and its restart only a signal handler can run. If its sigreturn
    // leads to EINTR after the call, and not to the call again, the wait is over.
    const auto registers = read_registers(thread.tid);
    if (registers && registers->orig_rax == kNoCallToRestart &&
        registers->rip == thread.call.wait->resume_address &&
        static_cast<int64_t>(registers->rax) == -EINTR) {
        end_futex_wait(thread, -EINTR);
    }
}

void Tracer::Engine::handle_signal(Thread& thread) {
    const int signal_number = WSTOPSIG(thread.status);
    thread.signal.deliver = signal_number;
    // All zeros would be a signal that another process sends.
    if (thread.signal.info.si_signo == 0) return;
    if (is_own_step(thread)) {
        thread.signal.deliver = 0;
        thread.step.trap_flag.end_step(thread.tid);
        stepping_.watchpoints().check_step(thread.tid, thread.step.watched.page,
                                           thread.step.watched.expected, thread.step.watched.place);
        return;
    }
    bool is_new = true;
    if (thread.signal.replay && thread.signal.replay->si_signo == signal_number) {
        thread.signal.info = *thread.signal.replay;
        thread.signal.replay.reset();
        if (thread.now == StopKind::kSignal)
            ptrace(PTRACE_SETSIGINFO, thread.tid, 0, &thread.signal.info);
        is_new = std::exchange(thread.signal.is_new, false);
    }
    if (signal_number == SIGSEGV && is_testee(thread) && keep_sent_fault(thread)) return;
    if (!is_new) return;
    if (is_sent_from_outside(thread.signal.info)) end_.note_outside_signal(signal_number);
    if (signal_number == SIGSEGV && is_testee(thread)) {
        if (report_guard_hit(thread)) return;
        report_write_fault(thread);
    }
    if (signal_number == SIGBUS && is_testee(thread)) report_write_fault(thread);
    if (is_fatal_synchronous(signal_number) && (is_testee(thread) || tracees_.testee() == 0))
        end_.note_fault(describe_fault(thread, thread.signal.info));
    if (signal_number == SIGSEGV && is_testee(thread)) take_fault_handler(thread);
}

// Sent by kill or sigqueue of a process that is neither in this run nor the runner. (A signal of
// tgkill is nearly always the thread's own: raise, abort.)
bool Tracer::Engine::is_sent_from_outside(const siginfo_t& info) const {
    const bool is_sent = info.si_code == SI_USER || info.si_code == SI_QUEUE;
    return is_sent && info.si_pid != getpid() && !tracees_.knows_process(info.si_pid);
}

// A stop by the run itself is the program's own affair. The terminal's stop signals come from the
// kernel.
void Tracer::Engine::note_group_stop(Thread& thread) {
    const int signal_number = WSTOPSIG(thread.status);
    if (signal_number != SIGTTIN && signal_number != SIGTTOU &&
        !end_.is_last_outside_signal(signal_number))
        return;
    push(thread, TracerTrouble{.tid = thread.tid,
                               .what = std::string("another process or the terminal has stopped "
                                                   "the testee by SIG") +
                                       sigabbrev_np(signal_number) +
                                       ", and it would not run before a SIGCONT",
                               .reason = TracerTrouble::Reason::stopped});
}

void Tracer::Engine::first_stop(Thread& thread) {
    Process& process = process_of(thread);
    if (process.is_new_fork_of_testee) {
        process.is_new_fork_of_testee = false;
        open_inherited_guards(thread);
    }
    if (!is_testee(thread)) stop_fork_bomb(thread);
    thread.is_new = false;
}

void Tracer::Engine::note_refused_task(Thread& thread) {
    const auto error = static_cast<int>(-thread.call_result);
    if (error != EAGAIN && error != ENOMEM) return;
    push(thread, TracerTrouble{.tid = thread.tid,
                               .what = std::string("the testee could not make a thread or a "
                                                   "process: ") +
                                       strerror(error) +
                                       ". Raise RLIMIT_NPROC (ulimit -u) of its user or pids.max "
                                       "of its cgroup, or run fewer cases at a time (--jobs)",
                               .reason = TracerTrouble::Reason::task_refused});
}

void Tracer::Engine::handle_child(Thread& thread) {
    thread.call.makes_task = false;
    unsigned long message = 0;
    if (ptrace(PTRACE_GETEVENTMSG, thread.tid, 0, &message) != 0) return;
    const auto child = static_cast<pid_t>(message);
    // If the child has lived and died already, there is no status, and it must not be recorded
    // again.
    const auto status = read_status(child);
    if (status && find(child) == nullptr) {
        const Thread& record = add_thread(child, status->process);
        const bool is_new = !tracees_.knows_process(status->process);
        Process& process = process_of(record);
        if (is_new) process.is_new_fork_of_testee = is_testee(thread);
        if (!process.has_executed) process.reports_to_output = process_of(thread).reports_to_output;
    }
    const int event = thread.status >> 16;
    const bool is_thread =
        event == PTRACE_EVENT_CLONE && status && status->process == thread.process;
    if (is_testee(thread) && !is_thread)
        push(thread, Forked{thread.tid, child, event == PTRACE_EVENT_VFORK,
                            has_the_memory_of_the_testee(child)});
    if (!is_thread) stop_fork_bomb(thread);
}

// For a thread that has made a process, and for one that is new: a child can be known before its
// parent's stop is handled. The trouble ends the case. Until then each process that runs makes at
// most one more, because this thread, and what is born from now on, stay stopped.
void Tracer::Engine::stop_fork_bomb(Thread& thread) {
    if (!effects_.has_fork_bomb && tracees_.process_count() <= kMostProcesses) return;
    thread.held = true;
    if (std::exchange(effects_.has_fork_bomb, true)) return;
    push(thread, TracerTrouble{.tid = thread.tid,
                               .what = "the testee has more than " +
                                       std::to_string(kMostProcesses) + " processes at once",
                               .reason = TracerTrouble::Reason::too_many_processes});
}

void Tracer::Engine::handle_exec(Thread& thread) {
    // The thread that executes takes the leader's number. All other threads of the process are gone
    // without a notice.
    stops_.drop_if([&](const Received& entry) {
        const Thread* other = find(entry.tid);
        return entry.tid != thread.tid && other != nullptr && other->process == thread.process;
    });
    for (auto& [tid, other] : tracees_.threads()) {
        if (other.process == thread.process) drop_futex_wait(other);
    }
    tracees_.remove_siblings(thread);
    Process& process = process_of(thread);
    process = Process{};
    process.pid = thread.process;
    process.has_executed = true;
    process.reports_to_output = !has_variable(thread.tid, kReportVariable);
    if (is_testee(thread)) code_.forget();
    thread.call.redirect.reset();
    thread.signal.replay.reset();
    thread.call.reissued = thread.held = thread.is_zombie = false;
    thread.mask.forget_unblocked_fault();
    thread.signal.kept.reset();
    // The exit of execve itself is irrelevant, but in PTRACE_SYSCALL mode it arrives and clears
    // this.
    if (thread.process == program_.pid()) program_.note_exec();
    if (!is_testee(thread)) return;
    mappings_.note_exec();
    push(thread, Executed{thread.process});
}

void Tracer::Engine::handle_gone(pid_t tid, int status) {
    Thread* thread = find(tid);
    if (thread == nullptr) return;
    const pid_t process = thread->process;
    drop_futex_wait(*thread);
    pointers_.forget(*thread);
    tracees_.remove(tid);
    if (tid == process) handle_process_end(process, status);
}

void Tracer::Engine::handle_process_end(pid_t pid, int status) {
    tracees_.remove_process(pid);
    if (pid == program_.pid()) program_.note_end(status);
    if (end_.is_over()) return;
    if (pid == tracees_.testee()) {
        end_.set(describe_end(pid, status));
    } else if (tracees_.testee() == 0 && !tracees_.has_processes()) {
        end_.set(describe_end(program_.pid(), program_.end_status()));
    }
}

Ended Tracer::Engine::describe_end(pid_t pid, int status) {
    const bool needs_ptrace =
        output_.standard_error().find("does not work under ptrace") != std::string::npos;
    Ended ended = end_.describe(pid, status, !mappings_.is_empty(), needs_ptrace);
    if (ended.kind == EndKind::kExited && !program_.has_executed()) program_.explain_failure(ended);
    return ended;
}

}  // namespace kmes::conformance
