// SPDX-License-Identifier: MIT
//
// Which system calls of a testee must stop it: said twice, as a seccomp filter and as a function
// for the mode in which every call stops. Knows no processes.

#ifndef CONFORMANCE_TRACER_INTEREST_H_
#define CONFORMANCE_TRACER_INTEREST_H_

#include <linux/filter.h>

#include <cstdint>
#include <vector>

namespace kmes::conformance::tracing {

// Numbers that Debian 12's headers do not name.
inline constexpr long kFutexWakeCall = 454;
inline constexpr long kFutexWaitCall = 455;

// A filter that gives SECCOMP_RET_TRACE for
//   kmes_attach; clone with CLONE_UNTRACED; mmap of a file; mremap; munmap of an odd number of
//   pages (a mapping of 5.1.5 has one); and with `report_futex` futex operations on a word at
//   offset 128 of a page, futex_waitv, restart_syscall,
// and lets all else pass. Ring words always stand at such an offset, so address randomisation does
// not matter.
std::vector<sock_filter> interest_filter(bool report_futex);

// The same question for one call.
bool is_of_interest(long number, const uint64_t (&arguments)[6], bool report_futex);

// The kernel's own results for "interrupted, to be started again": never seen by a program.
bool is_restart_code(int64_t result);

// What a container's filter does: ENOSYS for numbers that it does not know. For tests.
std::vector<sock_filter> outer_filter();

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_INTEREST_H_
