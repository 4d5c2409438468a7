// SPDX-License-Identifier: MIT
//
// While pages are guarded, the kernel cannot follow the testee's pointers into them (EFAULT). For
// the duration of a system call they point to the hidden mapping of the same buffer. This covers
// plain pointers, iovec arrays (also of a message), and futex_waitv vectors. A futex word there is
// the same futex, because shared ones are keyed by file and offset. Knows calls and mappings.

#ifndef CONFORMANCE_TRACER_POINTER_REDIRECT_H_
#define CONFORMANCE_TRACER_POINTER_REDIRECT_H_

#include <sys/user.h>

#include <cstddef>
#include <cstdint>

#include "conformance/tracer/event_queue.h"
#include "conformance/tracer/mapping_table.h"
#include "conformance/tracer/scratch_slots.h"
#include "conformance/tracer/tracees.h"
#include "conformance/tracer/tracer.h"

namespace kmes::conformance::tracing {

// The arguments of the constructor must outlive the object.
class PointerRedirect {
  public:
    PointerRedirect(Tracees& tracees, MappingTable& mappings, EventQueue& events,
                    TracerEffects& effects)
        : tracees_(tracees), mappings_(mappings), events_(events), effects_(effects) {}

    // Redirects the pointers of a system call of the testee. The thread is stopped before the call,
    // with these registers. Returns whether it has redirected any; undo() restores them.
    bool redirect(Thread& thread, user_regs_struct& registers);
    // For restart_syscall, which would use the word's address from before the guards, and fail.
    // This begins the wait again instead. A relative timeout then starts again.
    void restart_wait_afresh(Thread& thread, user_regs_struct& registers);
    // Restores the pointers in `registers`. The caller writes them.
    void undo(Thread& thread, user_regs_struct& registers);
    // Call it after the thread is gone.
    void forget(Thread& thread);

    ScratchSlots& slots() { return slots_; }

  private:
    uint64_t unguarded_address(uint64_t address);
    void refuse_guard_pages(const Thread& thread, long number, const user_regs_struct& registers);
    void give_back(Redirect& redirect);
    uint64_t put_into_scratch(Thread& thread, Redirect& redirect, const void* bytes,
                              size_t size_bytes);
    bool rewrite_iovec(Thread& thread, Redirect& redirect, uint64_t& pointer, uint64_t count);
    void rewrite_message(Thread& thread, Redirect& redirect, uint64_t& pointer);
    bool rewrite_vector(Thread& thread, Redirect& redirect, uint64_t& pointer, size_t count,
                        size_t stride, size_t address_offset);

    Tracees& tracees_;
    MappingTable& mappings_;
    EventQueue& events_;
    TracerEffects& effects_;
    ScratchSlots slots_;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_POINTER_REDIRECT_H_
