// SPDX-License-Identifier: MIT
//
// A stop or an end arrives: what it is and who handles it. Handlers change the thread's record and
// push events; they never resume it. Knows the order of ptrace's stops, not what buffers are.

#include <sched.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>

#include "conformance/tracer/engine.h"
#include "conformance/tracer/injection.h"
#include "conformance/tracer/interest.h"

namespace kmes::conformance {
namespace {

constexpr uint64_t kCallInstructionBytes = 2;
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
    const siginfo_t& info = thread.signal_info;
    if (info.si_signo != SIGTRAP) return false;
    // The trap waits behind an interrupt, and is reported after the thread was resumed without a
    // step.
    if (thread.was_stepped && info.si_code == TRAP_TRACE) return true;
    return thread.is_stepping &&
           (info.si_code == TRAP_TRACE || info.si_code == TRAP_BRKPT || info.si_code == SIGTRAP);
}

}  // namespace

void Tracer::Engine::classify(Thread& thread) {
    lower_trap(thread);
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
    thread.is_guard_fault = false;
    if (kind == StopKind::kSignal) {
        ptrace(PTRACE_GETSIGINFO, thread.tid, 0, &thread.signal_info);
        if (is_testee(thread) && signal_number == SIGSEGV) {
            // (If a guard is there again, the fault is no longer late.)
            const bool was_late = std::exchange(thread.late_guard_fault, false);
            thread.is_guard_fault = was_late || is_at_guard(thread.signal_info);
            if (thread.is_guard_fault) note_guard_fault(thread);
        }
    }
    thread.received = thread.now = kind;
    thread.deliver_signal = 0;
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
        case StopKind::kNone:
            break;
    }
    thread = find(tid);
    if (thread != nullptr && may_run(*thread)) resume(*thread);
}

void Tracer::Engine::handle_entry(Thread& thread) {
    auto registers = read_registers(thread.tid);
    if (!registers) return;
    if (thread.entry_handled) {
        // The filter's own stop of a call that has been handled. A guard may have been set in
        // between.
        if (is_testee(thread) && any_guards()) redirect_arguments(thread, *registers);
        return;
    }
    // In seccomp mode a stop of PTRACE_SYSCALL comes before the filter's own, which then reports
    // nothing new.
    thread.entry_handled = thread.status >> 16 != PTRACE_EVENT_SECCOMP;
    const bool is_repeated = std::exchange(thread.reissued, false);
    const auto number = call_number_of(*registers);
    uint64_t arguments[6];
    arguments_of(*registers, arguments);
    process_of(thread).syscall_instruction = registers->rip - kCallInstructionBytes;
    if (number == SYS_restart_syscall && thread.wait && any_guards()) {
        restart_wait_afresh(thread, *registers);
        return;
    }
    if (call_handler_ && !is_repeated && is_testee(thread)) call_handler_(thread.tid, number);
    if (report_write_handler_ && !is_repeated) watch_report_write(thread, number, arguments);
    if (is_of_interest(number, arguments, options_.report_futex)) {
        if (number == kAttachCallNumber) {
            serve_attach(thread, *registers);
            return;
        }
        // If several threads call it, the kernel takes the first.
        if (number == SYS_exit_group && is_testee(thread) && exiting_thread_ == 0)
            exiting_thread_ = thread.tid;
        if (number == SYS_clone) {
            // LeakSanitizer's helper requests that. Untraced, it would get ENOSYS for every
            // filtered call.
            registers->rdi &= ~uint64_t{CLONE_UNTRACED};
            write_registers(thread.tid, *registers);
        }
        if (number == SYS_sched_setaffinity && is_testee(thread))
            note_own_processors(arguments[0] == 0 ? thread.tid : static_cast<pid_t>(arguments[0]));
        if (number == SYS_mmap && is_testee(thread) && (arguments[2] & PROT_EXEC) != 0)
            code_.forget();
        if (number == SYS_mmap && is_testee(thread) && serve_map(thread, *registers)) return;
        const bool is_mapped_over = number == SYS_mmap && (arguments[3] & MAP_FIXED) != 0;
        if ((number == SYS_munmap || number == SYS_mremap || is_mapped_over) && is_testee(thread) &&
            touches_mapping(arguments[0], arguments[1])) {
            mappings();  // forgets what has been unmapped unnoticed
            if (number == SYS_mremap && mapping_at(arguments[0]) != nullptr)
                push(TracerTrouble{.tid = thread.tid,
                                   .what = "the testee moves the mapping of a buffer (mremap), "
                                           "which the suite does not follow",
                                   .reason = TracerTrouble::Reason::not_followed});
            note_unmap(arguments[0], arguments[1]);
        }
        if (is_testee(thread) && !is_repeated) watch_futex(thread, *registers);
    }
    if (is_testee(thread) && any_guards()) redirect_arguments(thread, *registers);
}

void Tracer::Engine::handle_exit(Thread& thread) {
    thread.entry_handled = false;
    if (thread.redirect) {
        if (auto registers = read_registers(thread.tid)) {
            undo_redirect(thread, *registers);
            write_registers(thread.tid, *registers);
        }
    }
    if (!thread.wait) return;
    if (!thread.wait->interrupted) {
        if (is_restart_code(thread.call_result)) {
            thread.wait->interrupted = true;
        } else {
            end_futex_wait(thread, thread.call_result);
        }
        return;
    }
    // Between an interrupted wait and its restart only a signal handler can run. If its sigreturn
    // leads to EINTR after the call, and not to the call again, the wait is over.
    const auto registers = read_registers(thread.tid);
    if (registers && registers->orig_rax == kNoCallToRestart &&
        registers->rip == thread.wait->resume_address &&
        static_cast<int64_t>(registers->rax) == -EINTR) {
        end_futex_wait(thread, -EINTR);
    }
}

void Tracer::Engine::handle_signal(Thread& thread) {
    const int signal_number = WSTOPSIG(thread.status);
    thread.deliver_signal = signal_number;
    if (is_own_step(thread)) {
        thread.deliver_signal = 0;
        if (std::exchange(thread.steps_pushf, false)) clear_pushed_trap_flag(thread);
        check_step(thread, thread.step_operands, thread.step_place);
        return;
    }
    bool is_new = true;
    if (thread.replay && thread.replay->si_signo == signal_number) {
        thread.signal_info = *thread.replay;
        thread.replay.reset();
        if (thread.now == StopKind::kSignal)
            ptrace(PTRACE_SETSIGINFO, thread.tid, 0, &thread.signal_info);
        is_new = std::exchange(thread.signal_is_new, false);
    }
    if (signal_number == SIGSEGV && is_testee(thread) && keep_sent_fault(thread)) return;
    if (!is_new) return;
    if (signal_number == SIGSEGV && is_testee(thread)) {
        if (report_guard_hit(thread)) return;
        report_write_fault(thread);
    }
    if (signal_number == SIGBUS && is_testee(thread)) report_write_fault(thread);
    if (is_fatal_synchronous(signal_number) && (is_testee(thread) || testee_ == 0)) {
        Fault fault = describe_fault(thread);
        // If another thread's fault is ending the process, this thread can no longer be read.
        if (fault.code_place.details || !last_fault_) last_fault_ = std::move(fault);
    }
    if (signal_number == SIGSEGV && is_testee(thread)) take_fault_handler(thread);
}

void Tracer::Engine::first_stop(Thread& thread) {
    Process& process = process_of(thread);
    if (process.is_new_fork_of_testee) {
        process.is_new_fork_of_testee = false;
        open_inherited_guards(thread);
    }
    thread.is_new = false;
}

void Tracer::Engine::handle_child(Thread& thread) {
    unsigned long message = 0;
    if (ptrace(PTRACE_GETEVENTMSG, thread.tid, 0, &message) != 0) return;
    const auto child = static_cast<pid_t>(message);
    // If the child has lived and died already, there is no status, and it must not be recorded
    // again.
    const auto status = read_status(child);
    if (status && threads_.count(child) == 0) {
        const Thread& record = add_thread(child, status->process);
        const bool is_new = processes_.count(status->process) == 0;
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
}

void Tracer::Engine::handle_exec(Thread& thread) {
    // The thread that executes takes the leader's number. All other threads of the process are gone
    // without a notice.
    std::erase_if(backlog_, [&](const Received& entry) {
        const Thread* other = find(entry.tid);
        return entry.tid != thread.tid && other != nullptr && other->process == thread.process;
    });
    for (auto& [tid, other] : threads_) {
        if (other.process == thread.process) drop_futex_wait(other);
    }
    std::erase_if(threads_, [&](const auto& entry) {
        return entry.first != thread.tid && entry.second.process == thread.process;
    });
    Process& process = process_of(thread);
    process = Process{};
    process.pid = thread.process;
    process.has_executed = true;
    process.reports_to_output = !has_variable(thread.tid, kReportVariable);
    if (is_testee(thread)) code_.forget();
    thread.redirect.reset();
    thread.replay.reset();
    thread.reissued = thread.held = thread.is_zombie = thread.fault_is_unblocked = false;
    thread.kept_signal.reset();
    // The exit of execve itself is irrelevant, but in PTRACE_SYSCALL mode it arrives and clears
    // this.
    if (thread.process == first_process_) executed_ = true;
    if (!is_testee(thread)) return;
    for (LiveMapping& mapping : mappings_) {
        mapping.live = false;
        mapping.hidden = 0;  // gone with all mappings
        mapping.guards.clear();
    }
    push(thread, Executed{thread.process});
}

void Tracer::Engine::handle_gone(pid_t tid, int status) {
    Thread* thread = find(tid);
    if (thread == nullptr) return;
    const pid_t process = thread->process;
    drop_futex_wait(*thread);
    if (thread->redirect && thread->redirect->scratch_slot >= 0) {
        scratch_slots_[static_cast<size_t>(thread->redirect->scratch_slot)] = false;
    }
    threads_.erase(tid);
    if (tid == process) handle_process_end(process, status);
}

void Tracer::Engine::handle_process_end(pid_t pid, int status) {
    std::erase_if(threads_, [&](const auto& entry) { return entry.second.process == pid; });
    processes_.erase(pid);
    if (pid == first_process_) first_process_status_ = status;
    if (ended_) return;
    if (pid == testee_) {
        ended_ = describe_end(pid, status);
    } else if (testee_ == 0 && processes_.empty()) {
        ended_ = describe_end(first_process_, first_process_status_);
    }
}

Ended Tracer::Engine::describe_end(pid_t pid, int status) {
    Ended ended;
    ended.pid = pid;
    ended.attached = attached_;
    ended.mapped = !mappings_.empty();
    ended.fault = last_fault_;
    pump_output();
    ended.sanitizer_needs_ptrace =
        output_texts_[1].text().find("does not work under ptrace") != std::string::npos;
    if (WIFSIGNALED(status)) {
        ended.kind = EndKind::kKilled;
        ended.signal = WTERMSIG(status);
        if (ended.fault && ended.fault->signal != ended.signal) ended.fault.reset();
        if (ended.fault) ended.thread = ended.fault->tid;
        ended.text = "killed by " + (ended.fault ? ended.fault->describe()
                                                 : std::string("SIG") + sigabbrev_np(ended.signal));
        return ended;
    }
    ended.exit_status = WEXITSTATUS(status);
    ended.thread = exiting_thread_;
    ended.text = "exited with status " + std::to_string(ended.exit_status);
    if (!executed_) {
        const Launch::Failure failure = launch_->failure();
        ended.kind = EndKind::kNotStarted;
        ended.error = failure.error;
        const std::string& name = plan_.arguments[0];
        ended.text = failure.at_exec ? explain_exec_error(name, plan_.candidates[failure.candidate],
                                                          failure.error)
                                     : name + ": could not be set up: " + strerror(failure.error);
    } else if (ended.sanitizer_needs_ptrace) {
        ended.text +=
            ": its LeakSanitizer does not work in a traced program (ASAN_OPTIONS=detect_leaks=0 "
            "switches it off)";
    } else if (!attached_) {
        ended.text += " without having called kmes_attach (system call 1091)";
    }
    return ended;
}

}  // namespace kmes::conformance
