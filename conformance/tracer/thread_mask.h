// SPDX-License-Identifier: MIT
//
// The signal mask of one thread: as its program has set it, and as the kernel has it while pages
// are guarded (see signals.cc). Knows masks, but no guards.

#ifndef CONFORMANCE_TRACER_THREAD_MASK_H_
#define CONFORMANCE_TRACER_THREAD_MASK_H_

#include <sys/types.h>

#include <cstdint>

namespace kmes::conformance::tracing {

// Functions with a `tid` change or read the kernel's mask of that stopped thread.
class ThreadMask {
  public:
    // Records the mask as the testee has set it. Before that, nothing is known to be blocked.
    void note(pid_t tid);
    // Whether the testee blocks the signal, as it sees its mask.
    bool blocks(int signal_number) const;

    // Removes SIGSEGV from the kernel's mask, or restores it. Does nothing if the testee does not
    // block it.
    void unblock_fault(pid_t tid, bool unblock);
    // The kernel's mask lacks SIGSEGV, which the testee blocks.
    bool fault_is_unblocked() const { return fault_is_unblocked_; }
    // The kernel itself has unblocked SIGSEGV.
    void note_unblocked_fault() { fault_is_unblocked_ = true; }
    // A new program begins, with the mask that the kernel has.
    void forget_unblocked_fault() { fault_is_unblocked_ = false; }

    // Unblocks SIGTRAP for a step, and blocks it again after it.
    void lift_trap(pid_t tid);
    void lower_trap(pid_t tid);

  private:
    uint64_t blocked_ = 0;
    bool fault_is_unblocked_ = false;
    bool trap_is_lifted_ = false;  // SIGTRAP is not blocked for a step
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_THREAD_MASK_H_
