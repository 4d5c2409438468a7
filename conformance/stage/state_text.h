// SPDX-License-Identifier: MIT
//
// Describes the states of a testee's threads for a finding.
#ifndef KMES_CONFORMANCE_STAGE_STATE_TEXT_H_
#define KMES_CONFORMANCE_STAGE_STATE_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/tracer/tracer.h"

namespace kmes::conformance {

// Returns "0 to 3, 7" for numbers in rising order.
std::string ranges_text(const std::vector<std::uint32_t>& numbers);

// Returns "system call 202 (futex)". Only the usual blocking calls of consumers have a name.
std::string call_text(long number);

// Returns "3 threads; 12 running; 13 and 14 blocked in system call 202 (futex)". Threads in the
// same state share one entry, and there are at most six entries.
std::string describe_threads(const Inspection& inspection);

// Returns the limit of a thread's wait in seconds from now, if no run reaches it. Nothing: there is
// no limit, or it is near.
std::optional<std::int64_t> far_limit_seconds(const ThreadState& thread);

// True if a thread is blocked in io_uring_enter. The suite cannot see what it waits for.
bool waits_by_io_uring(const Inspection& inspection);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_STATE_TEXT_H_
