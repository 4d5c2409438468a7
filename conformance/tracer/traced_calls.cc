// SPDX-License-Identifier: MIT
//
// The seccomp filter, and the same rules in C++. Knows no processes.

#include "conformance/tracer/traced_calls.h"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>

#include "conformance/tracer/types.h"

namespace kmes::conformance::tracing {
namespace {

constexpr long kTaskCalls[] = {SYS_clone, SYS_clone3, SYS_fork, SYS_vfork};
constexpr uint32_t kX32Bit = 0x40000000;
constexpr uint32_t kPageMask = 0xfff;
constexpr uint32_t kAllBits = 0xffffffff;
constexpr uint32_t kHighestKnownNumber = 600;  // of the simulated container filter

sock_filter load_word(size_t offset) {
    return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
}
sock_filter load_argument_low(int index) {
    return load_word(offsetof(seccomp_data, args) + sizeof(uint64_t) * static_cast<size_t>(index));
}
sock_filter give(uint32_t action) {
    return BPF_STMT(BPF_RET | BPF_K, action);
}
sock_filter jump_if_equal(uint32_t value, uint8_t then_skip, uint8_t else_skip) {
    return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, then_skip, else_skip);
}
sock_filter keep_bits(uint32_t mask) {
    return BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask);
}

// If the number in the accumulator is `number`, trace the call.
void trace_number(std::vector<sock_filter>& filter, long number) {
    filter.push_back(jump_if_equal(static_cast<uint32_t>(number), 0, 1));
    filter.push_back(give(SECCOMP_RET_TRACE));
}

// If the number is `number`: trace the call if these bits of the low half of this argument have
// this value, else let it pass.
void trace_if_argument(std::vector<sock_filter>& filter, long number, int index, uint32_t bits,
                       uint32_t value) {
    filter.push_back(jump_if_equal(static_cast<uint32_t>(number), 0, 5));
    filter.push_back(load_argument_low(index));
    filter.push_back(keep_bits(bits));
    filter.push_back(jump_if_equal(value, 0, 1));
    filter.push_back(give(SECCOMP_RET_TRACE));
    filter.push_back(give(SECCOMP_RET_ALLOW));
}

}  // namespace

std::vector<sock_filter> traced_calls_filter(bool report_futex) {
    std::vector<sock_filter> filter = {
        load_word(offsetof(seccomp_data, arch)),
        jump_if_equal(AUDIT_ARCH_X86_64, 1, 0),
        give(SECCOMP_RET_ALLOW),
        load_word(offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kX32Bit, 0, 1),
        give(SECCOMP_RET_ALLOW),
    };
    trace_number(filter, kAttachCallNumber);
    trace_number(filter, SYS_exit_group);
    if (report_futex) {
        for (const long number : {static_cast<long>(SYS_futex), kFutexWakeCall, kFutexWaitCall})
            trace_if_argument(filter, number, 0, kPageMask, kFutexWordOffset);
        trace_number(filter, SYS_futex_waitv);
        trace_number(filter, SYS_restart_syscall);
    }
    for (const long number : kTaskCalls) trace_number(filter, number);
    // mmap: all but those with fd -1 at an address of the kernel's choice.
    filter.push_back(jump_if_equal(SYS_mmap, 0, 7));
    filter.push_back(load_argument_low(4));
    filter.push_back(jump_if_equal(0xffffffffu, 0, 4));
    filter.push_back(load_argument_low(3));
    filter.push_back(keep_bits(MAP_FIXED));
    filter.push_back(jump_if_equal(0, 0, 1));
    filter.push_back(give(SECCOMP_RET_ALLOW));
    filter.push_back(give(SECCOMP_RET_TRACE));
    // Any length: a munmap may cover a buffer together with its neighbours.
    trace_number(filter, SYS_munmap);
    trace_number(filter, SYS_mremap);
    trace_number(filter, SYS_mprotect);
    trace_number(filter, SYS_sched_setaffinity);
    trace_if_argument(filter, SYS_seccomp, 0, kAllBits, SECCOMP_SET_MODE_STRICT);
    trace_if_argument(filter, SYS_prctl, 0, kAllBits, PR_SET_SECCOMP);
    filter.push_back(give(SECCOMP_RET_ALLOW));
    return filter;
}

bool is_traced_call(long number, const uint64_t (&arguments)[6], bool report_futex) {
    switch (number) {
        case kAttachCallNumber:
        case SYS_exit_group:
        case SYS_mprotect:
        case SYS_mremap:
        case SYS_munmap:
        case SYS_sched_setaffinity:
            return true;
        case SYS_mmap:
            return static_cast<uint32_t>(arguments[4]) != 0xffffffffu ||
                   (arguments[3] & MAP_FIXED) != 0;
        case SYS_futex:
        case kFutexWakeCall:
        case kFutexWaitCall:
            return report_futex && (arguments[0] & kPageMask) == kFutexWordOffset;
        case SYS_futex_waitv:
        case SYS_restart_syscall:
            return report_futex;
        case SYS_seccomp:
            return wants_strict_mode(number, arguments);
        case SYS_prctl:
            return static_cast<uint32_t>(arguments[0]) == PR_SET_SECCOMP;
        default:
            return makes_task(number);
    }
}

bool wants_strict_mode(long number, const uint64_t (&arguments)[6]) {
    if (number == SYS_seccomp)
        return static_cast<uint32_t>(arguments[0]) == SECCOMP_SET_MODE_STRICT;
    return number == SYS_prctl && static_cast<uint32_t>(arguments[0]) == PR_SET_SECCOMP &&
           arguments[1] == SECCOMP_MODE_STRICT;
}

bool makes_task(long number) {
    return std::find(std::begin(kTaskCalls), std::end(kTaskCalls), number) != std::end(kTaskCalls);
}

bool is_restart_code(int64_t result) {
    return result <= -512 && result >= -516 && result != -515;
}

std::vector<sock_filter> outer_filter() {
    return {
        load_word(offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, kHighestKnownNumber, 0, 1),
        give(SECCOMP_RET_ERRNO | ENOSYS),
        give(SECCOMP_RET_ALLOW),
    };
}

}  // namespace kmes::conformance::tracing
