// SPDX-License-Identifier: MIT
//
// What a testee's threads are doing, in words for a finding.
#ifndef KMES_CONFORMANCE_STAGE_STATE_TEXT_H_
#define KMES_CONFORMANCE_STAGE_STATE_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/tracer/tracer.h"

namespace kmes::conformance {

// "0 to 3, 7", of numbers that rise.
std::string ranges_text(const std::vector<std::uint32_t>& numbers);

// "system call 202 (futex)"; the name of those that a consumer is blocked in as a rule.
std::string call_text(long number);

// "3 threads; 12 running; 13 and 14 blocked in system call 202 (futex)": threads that do the same
// are told together, and not more than six kinds.
std::string describe_threads(const Inspection& inspection);

// Where the limit of a thread's wait is so far ahead that no run sees its end: how many seconds.
std::optional<std::int64_t> far_limit_seconds(const ThreadState& thread);

// A thread is blocked in io_uring_enter: for what, nobody sees.
bool waits_by_io_uring(const Inspection& inspection);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_STATE_TEXT_H_
