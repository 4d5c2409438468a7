// SPDX-License-Identifier: MIT
//
// System calls that a stopped thread of the testee executes for the tracer. Knows registers and
// stops, and nothing of buffers.

#ifndef CONFORMANCE_TRACER_INJECTION_H_
#define CONFORMANCE_TRACER_INJECTION_H_

#include <signal.h>
#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <optional>

#include "conformance/tracer/thread.h"

namespace kmes::conformance::tracing {

// The functions of the tracer that an injection needs.
class InjectionHost {
  public:
    // An address of a syscall instruction in the thread's program; 0: none is known.
    virtual uint64_t syscall_instruction_of(const Thread& thread) = 0;
    // Called when the thread and the tracer begin to take turns.
    virtual void share_processor() = 0;
    // Returns the next stop of this thread; nothing if it has ended. Keeps the stops of other
    // threads for later.
    virtual std::optional<int> wait_for_thread(pid_t tid) = 0;
    // If the signal is the thread's fault at a guard, records it and returns true.
    virtual bool take_guard_fault(Thread& thread, const siginfo_t& info) = 0;
    // Restores the pointers of the call that the thread is about to repeat.
    virtual void undo_redirect(Thread& thread, user_regs_struct& registers) = 0;
    // Drops the stops of the thread that are kept for later. Returns true if there was one.
    virtual bool drop_stops(Thread& thread) = 0;
    // Reports a thread that has stopped with this signal again and again, and executed nothing.
    virtual void note_stuck(Thread& thread, const siginfo_t& info) = 0;

  protected:
    ~InjectionHost() = default;
};

// A sequence of injected calls in one thread. The thread must be stopped, but not in kKernelEvent
// or kGroup. Its signals are blocked meanwhile, except SIGTRAP and SIGSEGV, whose handlers the
// kernel would reset. One of the two finish functions ends the sequence and leaves the thread in a
// kExit stop.
class Injection {
  public:
    Injection(InjectionHost& host, Thread& thread);
    ~Injection();
    Injection(const Injection&) = delete;
    Injection& operator=(const Injection&) = delete;

    // Returns false if the thread is gone or stuck, or no address of a syscall instruction is
    // known. All calls then return -ESRCH.
    bool usable() const { return usable_; }
    // Returns the kernel's result: a value, or -errno.
    int64_t call(long number, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0,
                 uint64_t e = 0, uint64_t f = 0);
    // For a thread that was stopped at an entry: ends that call with `result`.
    void finish_call(int64_t result);
    // Restores the thread: it repeats its entry, and the kernel restarts an interrupted call.
    void finish();

  private:
    bool run_to_exit(int64_t* result);
    void keep_signal(const siginfo_t& info);
    void give_up(const siginfo_t& info);
    void put_back(user_regs_struct registers);

    // The kernel's struct ptrace_sud_config.
    struct UserDispatch {
        uint64_t mode = 0;
        uint64_t selector = 0;
        uint64_t offset = 0;
        uint64_t length = 0;
    };
    void suspend_user_dispatch();

    InjectionHost& host_;
    Thread& thread_;
    pid_t tid_;
    bool usable_ = false;
    bool finished_ = false;
    bool at_entry_ = false;  // the thread was stopped before a system call
    bool moved_ = false;     // a call has been made: the registers have changed
    user_regs_struct saved_ = {};
    uint64_t saved_mask_ = 0;
    uint64_t syscall_instruction_ = 0;
    std::optional<UserDispatch> user_dispatch_;
    std::optional<siginfo_t> stuck_at_;  // the signal that kept the thread from a call
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_INJECTION_H_
