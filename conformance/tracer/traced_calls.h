// SPDX-License-Identifier: MIT
//
// The system calls of a testee that must stop it. One form is a seccomp filter, the other a
// function for the mode in which every call stops. Knows no processes.

#ifndef CONFORMANCE_TRACER_TRACED_CALLS_H_
#define CONFORMANCE_TRACER_TRACED_CALLS_H_

#include <linux/filter.h>

#include <cstdint>
#include <vector>

namespace kmes::conformance::tracing {

// Numbers that Debian 12's headers do not name.
inline constexpr long kFutexWakeCall = 454;
inline constexpr long kFutexWaitCall = 455;

// Returns a filter that gives SECCOMP_RET_TRACE for
//   kmes_attach; exit_group; what makes_task; mmap of a file or with MAP_FIXED; mprotect; mremap;
//   munmap; sched_setaffinity; what asks for a mode of seccomp by prctl, or for the strict mode;
//   and with `report_futex` futex operations on a word at offset 128 of a page, futex_waitv,
//   restart_syscall.
// All other calls pass. Every ring word has such an offset, so address randomisation is irrelevant.
std::vector<sock_filter> traced_calls_filter(bool report_futex);

// Returns whether the filter would stop this call.
bool is_traced_call(long number, const uint64_t (&arguments)[6], bool report_futex);

// Whether the call asks for the strict mode of seccomp, in which a thread can read, write and exit.
bool wants_strict_mode(long number, const uint64_t (&arguments)[6]);

// Whether the call makes a thread or a process: clone, clone3, fork, vfork.
bool makes_task(long number);

// Whether the result is one of the kernel's "interrupted, to be restarted". A program never sees
// them.
bool is_restart_code(int64_t result);

// A filter like that of a container: ENOSYS for unknown numbers. For tests.
std::vector<sock_filter> outer_filter();

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_TRACED_CALLS_H_
