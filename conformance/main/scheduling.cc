// SPDX-License-Identifier: MIT
//
// See scheduling.h.
#include "conformance/main/scheduling.h"

#include <sched.h>

namespace kmes::conformance {

void leave_real_time() {
    const int policy = ::sched_getscheduler(0) & ~SCHED_RESET_ON_FORK;
    if (policy != SCHED_FIFO && policy != SCHED_RR && policy != SCHED_DEADLINE) return;
    const sched_param ordinary{};
    ::sched_setscheduler(0, SCHED_OTHER, &ordinary);  // every user may do so
}

}  // namespace kmes::conformance
