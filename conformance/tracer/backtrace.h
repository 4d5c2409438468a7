// SPDX-License-Identifier: MIT
//
// Who has called: the frames of a stopped thread, by libdw and the unwind tables of its files,
// which stripped ones have as well. Knows no buffers and no stops.

#ifndef CONFORMANCE_TRACER_BACKTRACE_H_
#define CONFORMANCE_TRACER_BACKTRACE_H_

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <vector>

namespace kmes::conformance::tracing {

// The addresses that a thread returns to, innermost first; `most` at most, and fewer (or none)
// where a frame cannot be unwound. The thread stands still, with these registers.
std::vector<uint64_t> return_addresses(pid_t tid, const user_regs_struct& registers, size_t most);

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_BACKTRACE_H_
