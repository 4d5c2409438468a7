// SPDX-License-Identifier: MIT
//
// A limit on each access of the runner to memory of a testee. A thread of the testee can serve its
// pages (userfaultfd). If the runner has stopped that thread, the access waits in the kernel, where
// only the end of the testee, or of the runner, ends it. Knows /proc, no stops.

#ifndef CONFORMANCE_TRACER_LIMITED_ACCESS_H_
#define CONFORMANCE_TRACER_LIMITED_ACCESS_H_

#include <chrono>

namespace kmes::conformance::tracing {

// An access that takes longer than this ends the processes that its thread traces.
constexpr std::chrono::seconds kAccessLimit{5};

// An access of the calling thread, from the constructor to the destructor. They do not nest.
class LimitedAccess {
  public:
    LimitedAccess();
    ~LimitedAccess();
    LimitedAccess(const LimitedAccess&) = delete;
    LimitedAccess& operator=(const LimitedAccess&) = delete;
};

// Returns true if an access of the calling thread has exceeded the limit since the last call. All
// processes that the thread traced have been killed.
bool take_exceeded_limit();

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_LIMITED_ACCESS_H_
