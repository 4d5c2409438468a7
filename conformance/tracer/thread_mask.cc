// SPDX-License-Identifier: MIT
//
// See thread_mask.h.

#include "conformance/tracer/thread_mask.h"

#include <sys/ptrace.h>

#include <csignal>
#include <utility>

#include "conformance/tracer/kernel_signals.h"

namespace kmes::conformance::tracing {
namespace {

void change_mask(pid_t tid, uint64_t set, uint64_t clear) {
    uint64_t mask = 0;
    if (ptrace(PTRACE_GETSIGMASK, tid, sizeof mask, &mask) != 0) return;
    mask = (mask | set) & ~clear;
    ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask);
}

}  // namespace

bool ThreadMask::blocks(int signal_number) const {
    return (blocked_ & signal_bit(signal_number)) != 0;
}

void ThreadMask::note(pid_t tid) {
    uint64_t mask = 0;
    if (ptrace(PTRACE_GETSIGMASK, tid, sizeof mask, &mask) != 0) return;
    blocked_ = mask | (fault_is_unblocked_ ? signal_bit(SIGSEGV) : 0);
}

void ThreadMask::unblock_fault(pid_t tid, bool unblock) {
    const bool is_blocked = blocks(SIGSEGV);
    const bool was_unblocked = std::exchange(fault_is_unblocked_, unblock && is_blocked);
    if (!is_blocked || was_unblocked == unblock) return;
    const uint64_t mask = blocked_ & ~(unblock ? signal_bit(SIGSEGV) : 0);
    ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask);
}

// The trap of a step would have the same effect as a fault.
void ThreadMask::lift_trap(pid_t tid) {
    if (!blocks(SIGTRAP)) return;
    change_mask(tid, 0, signal_bit(SIGTRAP));
    trap_is_lifted_ = true;
}

void ThreadMask::lower_trap(pid_t tid) {
    if (std::exchange(trap_is_lifted_, false)) change_mask(tid, signal_bit(SIGTRAP), 0);
}

}  // namespace kmes::conformance::tracing
