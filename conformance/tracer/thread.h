// SPDX-License-Identifier: MIT
//
// The tracer's records of one thread and of one process. The engine changes them.

#ifndef CONFORMANCE_TRACER_THREAD_H_
#define CONFORMANCE_TRACER_THREAD_H_

#include <signal.h>
#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "conformance/tracer/events.h"
#include "conformance/tracer/pending_access.h"
#include "conformance/tracer/scratch_slots.h"
#include "conformance/tracer/thread_mask.h"
#include "conformance/tracer/trap_flag.h"
#include "conformance/tracer/watchpoints.h"

namespace kmes::conformance::tracing {

// The kind of ptrace stop that a thread is in.
enum class StopKind {
    kNone,         // it runs
    kEntry,        // before a system call: the number and arguments can still be changed
    kExit,         // after a system call
    kSignal,       // a signal is about to be delivered
    kKernelEvent,  // inside clone, fork, vfork or execve
    kInterrupt,    // by PTRACE_INTERRUPT, or the first stop of a new thread
    kGroup,        // stopped by SIGSTOP and the like; continues as "listening"
};

// A futex wait that has been reported and has not ended.
struct ActiveWait {
    FutexWait report;
    long number = 0;
    uint64_t arguments[6] = {};
    uint64_t resume_address = 0;  // the program's next address after the call
    bool interrupted = false;     // by a stop or a signal: the kernel may restart it
};

// Arguments of a system call that point to the hidden mapping until the call ends.
struct Redirect {
    uint64_t original_arguments[6] = {};
    struct Slot {
        uint64_t slot = ScratchSlots::kNone;
        uint64_t size_bytes = 0;
    };
    std::vector<Slot> slots;
};

// The system call that a thread is in, or is about to make again.
struct CallState {
    bool entry_handled = false;  // the seccomp stop that follows reports nothing new
    bool reissued = false;       // the next entry repeats a call that has been reported
    bool makes_task = false;     // it is in a clone or fork that has made nothing yet
    std::optional<ActiveWait> wait;
    std::optional<Redirect> redirect;
};

// The signals of a thread that are on their way to it.
struct SignalState {
    siginfo_t info = {};  // received == kSignal
    int deliver = 0;      // the signal to deliver when it resumes
    bool is_new = false;  // it arrived during an injection: to be handled when it comes back
    // The signal that comes back after an injection, with its first information.
    std::optional<siginfo_t> replay;
    // A SIGSEGV that was sent while the thread blocks SIGSEGV.
    std::optional<siginfo_t> kept;
};

// The state of a thread at guarded pages.
struct GuardState {
    bool is_fault = false;       // received == kSignal: a guard was in place when it was received
    bool is_late_fault = false;  // its SIGSEGV was pending when the guard was removed
    std::optional<PendingAccess> pending;  // it is stopped before this access
};

// The state of a thread that executes single instructions.
struct StepState {
    bool is_stepping = false;        // it was resumed for one instruction
    bool was_stepped = false;        // at least once
    bool leaves_for_kernel = false;  // its next instruction is a system call, or it is in one
    TrapFlag trap_flag;
    WatchedStep watched;
};

struct Thread {
    pid_t tid = 0;
    pid_t process = 0;
    bool is_new = true;  // its first stop has not been handled
    // A leader that has ended before the other threads: it never stops again.
    bool is_zombie = false;

    // The stop as it was received (what to handle), and the kind of stop that the thread is in now.
    // An injection changes the latter to kExit.
    bool stopped = false;
    int status = 0;
    StopKind received = StopKind::kNone;
    StopKind now = StopKind::kNone;
    int64_t call_result = 0;        // received == kExit
    bool is_in_group_stop = false;  // resumed to wait for SIGCONT

    bool in_backlog = false;  // received, not handled yet
    int queued_events = 0;    // events of this stop that wait() has not returned yet
    bool held = false;

    CallState call;
    SignalState signal;
    ThreadMask mask;
    GuardState guard;
    StepState step;
};

struct Process {
    pid_t pid = 0;
    // An address of a syscall instruction in this program; 0: none seen.
    uint64_t syscall_instruction = 0;
    uint64_t scratch = 0;  // the tracer's own pages in this memory; 0: none yet
    bool is_new_fork_of_testee = false;
    bool has_executed = false;
    // The process was started without KMES_REPORT_FD: by the contract it reports to descriptor 1.
    bool reports_to_output = false;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_THREAD_H_
