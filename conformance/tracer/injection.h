// SPDX-License-Identifier: MIT
//
// System calls executed by a stopped thread of the testee, on the tracer's behalf. Knows registers
// and stops, nothing of buffers.

#ifndef CONFORMANCE_TRACER_INJECTION_H_
#define CONFORMANCE_TRACER_INJECTION_H_

#include <sys/user.h>

#include <cstdint>

#include "conformance/tracer/engine.h"

namespace kmes::conformance::tracing {

// One stretch of injected calls in one thread, which must be stopped in any kind of stop but
// kKernelEvent and kGroup. The thread's signals are blocked meanwhile (all but SIGTRAP and SIGSEGV,
// whose handlers the kernel would reset). To be ended by one of the two finish functions; the
// thread is then in a kExit stop.
class Injection {
  public:
    Injection(Tracer::Engine& engine, Thread& thread);
    ~Injection();
    Injection(const Injection&) = delete;
    Injection& operator=(const Injection&) = delete;

    // False: the thread is gone, or no address of a syscall instruction is known. All calls then
    // give -ESRCH.
    bool usable() const { return usable_; }
    // The result as the kernel gives it: a value, or -errno.
    int64_t call(long number, uint64_t a = 0, uint64_t b = 0, uint64_t c = 0, uint64_t d = 0,
                 uint64_t e = 0, uint64_t f = 0);
    // For a thread that stood at an entry: that call is over and gave `result`.
    void finish_call(int64_t result);
    // The thread goes on as if nothing had been: an entry is made again, an interrupted call
    // restarted.
    void finish();

  private:
    bool run_to_exit(int64_t* result);
    void keep_signal(const siginfo_t& info);
    void put_back(user_regs_struct registers);

    Tracer::Engine& engine_;
    Thread& thread_;
    pid_t tid_;
    bool usable_ = false;
    bool finished_ = false;
    bool at_entry_ = false;  // the thread stood before a system call
    bool moved_ = false;     // a call has been made: the thread is no longer where it was
    user_regs_struct saved_ = {};
    uint64_t saved_mask_ = 0;
    uint64_t syscall_instruction_ = 0;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_INJECTION_H_
