// SPDX-License-Identifier: MIT
//
// Makes a stopped thread execute a system call, and restores its state. Knows registers and stops,
// nothing of buffers.

#include "conformance/tracer/injection.h"

#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "conformance/tracer/kernel_signals.h"
#include "conformance/tracer/memory.h"
#include "conformance/tracer/registers.h"

namespace kmes::conformance::tracing {
namespace {

// The kernel's internal results for "interrupted, to be restarted", which a program never sees.
constexpr int64_t kRestartSystemCall = -512;   // ERESTARTSYS
constexpr int64_t kRestartNoInterrupt = -513;  // ERESTARTNOINTR
constexpr int64_t kRestartNoHandler = -514;    // ERESTARTNOHAND
constexpr int64_t kRestartBlock = -516;        // ERESTART_RESTARTBLOCK
constexpr uint64_t kNoCall = ~uint64_t{0};

// The signals after which a call counts as impossible. One fault may be pending when it begins, and
// other processes may send some.
constexpr int kMostSignals = 100;

// Requests of Linux 6.4: syscall user dispatch of a thread, by which its calls become SIGSYS.
constexpr auto kSetUserDispatch = static_cast<__ptrace_request>(0x4210);
constexpr auto kGetUserDispatch = static_cast<__ptrace_request>(0x4211);

// Changes the registers as the kernel does on the way out of an interrupted call. After an injected
// call the kernel would not do so, because that call was not interrupted.
void restart_interrupted_call(user_regs_struct& registers) {
    if (registers.orig_rax == kNoCall) return;
    const auto result = static_cast<int64_t>(registers.rax);
    if (result == kRestartSystemCall || result == kRestartNoInterrupt ||
        result == kRestartNoHandler) {
        registers.rax = registers.orig_rax;
        registers.rip -= kSyscallInstructionBytes;
    } else if (result == kRestartBlock) {
        registers.rax = SYS_restart_syscall;
        registers.rip -= kSyscallInstructionBytes;
    }
}

// Restarts a restartable sequence (rseq), as the kernel does if a thread was moved during one.
// After an injected call the kernel would not, because the thread was elsewhere.
void leave_critical_section(pid_t tid, user_regs_struct& registers) {
    constexpr uint64_t kSectionAt = 8;  // of struct rseq
    struct Section {
        uint32_t version, flags;
        uint64_t start, length, abort;
    };
    const uint64_t area = rseq_area_of(tid);
    if (area == 0) return;
    const auto at = read_value<uint64_t>(tid, area + kSectionAt);
    if (!at || *at == 0) return;
    const auto section = read_value<Section>(tid, *at);
    if (!section || registers.rip - section->start >= section->length) return;
    registers.rip = section->abort;
    const uint64_t none = 0;
    write_memory(tid, area + kSectionAt, &none, sizeof none);
}

}  // namespace

Injection::Injection(InjectionHost& host, Thread& thread)
    : host_(host), thread_(thread), tid_(thread.tid) {
    const auto registers = read_registers(tid_);
    if (!registers || thread.now == StopKind::kNone || thread.now == StopKind::kKernelEvent) return;
    saved_ = *registers;
    leave_critical_section(tid_, saved_);
    at_entry_ = thread.now == StopKind::kEntry;
    syscall_instruction_ = host.syscall_instruction_of(thread);
    if (!at_entry_ && syscall_instruction_ == 0) return;
    if (ptrace(PTRACE_GETSIGMASK, tid_, sizeof saved_mask_, &saved_mask_) != 0) return;
    const uint64_t blocked = kAllButFaults;
    usable_ = ptrace(PTRACE_SETSIGMASK, tid_, sizeof blocked, &blocked) == 0;
    suspend_user_dispatch();
    host.share_processor();
}

void Injection::suspend_user_dispatch() {
    const UserDispatch none;
    UserDispatch current;
    if (ptrace(kGetUserDispatch, tid_, sizeof current, &current) != 0 || current.mode == 0) return;
    if (ptrace(kSetUserDispatch, tid_, sizeof none, &none) == 0) user_dispatch_ = current;
}

Injection::~Injection() {
    if (!finished_) finish();
}

int64_t Injection::call(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e,
                        uint64_t f) {
    if (!usable_) return -ESRCH;
    user_regs_struct registers = saved_;
    const uint64_t arguments[6] = {a, b, c, d, e, f};
    set_arguments(registers, arguments);
    if (thread_.now == StopKind::kEntry) {
        registers.orig_rax = static_cast<uint64_t>(number);
    } else {
        registers.rip = syscall_instruction_;
        registers.rax = static_cast<uint64_t>(number);
        registers.orig_rax = kNoCall;  // the interrupted call, if any, must not be restarted now
    }
    int64_t result = -ESRCH;
    moved_ = true;
    if (!write_registers(tid_, registers) || !run_to_exit(&result)) {
        usable_ = false;
        return -ESRCH;
    }
    syscall_instruction_ = host_.syscall_instruction_of(thread_);
    return result;
}

// A thread may fault before the call, and then each time that it is resumed. Examples: the page of
// the syscall instruction has no access, or the thread's rseq area is unmapped.
bool Injection::run_to_exit(int64_t* result) {
    for (int signals = 0;;) {
        // ESRCH means that the thread was killed; the next status says so.
        ptrace(PTRACE_SYSCALL, tid_, 0, 0);
        const auto status = host_.wait_for_thread(tid_);
        if (!status) return false;
        const int signal_number = WSTOPSIG(*status);
        if (signal_number == (SIGTRAP | 0x80)) {
            __ptrace_syscall_info info{};
            if (ptrace(PTRACE_GET_SYSCALL_INFO, tid_, sizeof info, &info) <= 0) continue;
            if (info.op != PTRACE_SYSCALL_INFO_EXIT) continue;
            thread_.now = StopKind::kExit;
            *result = info.exit.rval;
            return true;
        }
        if (*status >> 16 != 0) continue;  // a seccomp stop of this very call, or a late interrupt
        // Only SIGSEGV and SIGTRAP are not blocked. One may have been pending at the stop, or come
        // from kill().
        siginfo_t info{};
        if (ptrace(PTRACE_GETSIGINFO, tid_, 0, &info) != 0) continue;
        keep_signal(info);
        if (++signals < kMostSignals) continue;
        give_up(info);
        return false;
    }
}

// The thread is at the stop of this signal. A signal that it had before is delivered from there.
void Injection::give_up(const siginfo_t& info) {
    stuck_at_ = info;
    thread_.now = StopKind::kSignal;
    if (thread_.signal.deliver != 0) ptrace(PTRACE_SETSIGINFO, tid_, 0, &thread_.signal.info);
}

// The signal is handled after the injection. A fault is dropped, because the thread repeats that
// access. A signal that was handled before, and is received again after an injection, keeps its
// first information.
void Injection::keep_signal(const siginfo_t& info) {
    const bool comes_back =
        thread_.signal.replay && thread_.signal.replay->si_signo == info.si_signo;
    if (host_.take_guard_fault(thread_, info)) {
        thread_.guard.is_late_fault = false;
    } else if (comes_back) {
        thread_.signal.info = *std::exchange(thread_.signal.replay, std::nullopt);
        thread_.signal.deliver = info.si_signo;
    } else if (info.si_signo != SIGSEGV || info.si_code <= 0) {
        thread_.signal.info = info;
        thread_.signal.deliver = info.si_signo;
        thread_.signal.is_new = true;
    }
}

void Injection::put_back(user_regs_struct registers) {
    finished_ = true;
    if (user_dispatch_) ptrace(kSetUserDispatch, tid_, sizeof *user_dispatch_, &*user_dispatch_);
    if (!usable_ && !stuck_at_) return;
    if (moved_) write_registers(tid_, registers);
    ptrace(PTRACE_SETSIGMASK, tid_, sizeof saved_mask_, &saved_mask_);
    if (stuck_at_) host_.note_stuck(thread_, *stuck_at_);
}

void Injection::finish_call(int64_t result) {
    user_regs_struct registers = saved_;
    registers.rax = static_cast<uint64_t>(result);
    registers.orig_rax = kNoCall;
    thread_.call.entry_handled = false;
    put_back(registers);
}

void Injection::finish() {
    user_regs_struct registers = saved_;
    if (at_entry_ && moved_) {
        if (thread_.call.redirect) host_.undo_redirect(thread_, registers);
        registers.rax = registers.orig_rax;
        registers.orig_rax = kNoCall;
        registers.rip -= kSyscallInstructionBytes;
        thread_.call.entry_handled = false;
        // A reported call is not reported again. One that has not been handled will be when it
        // repeats.
        thread_.call.reissued = !host_.drop_stops(thread_);
    } else if (moved_) {
        restart_interrupted_call(registers);
        registers.orig_rax = kNoCall;
    }
    put_back(registers);
}

}  // namespace kmes::conformance::tracing
