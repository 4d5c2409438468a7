// SPDX-License-Identifier: MIT
//
// See shared_processor.h.

#include "conformance/tracer/shared_processor.h"

#include <algorithm>

namespace kmes::conformance::tracing {
namespace {

// Within this time after an injected call, the testee may map another buffer.
constexpr auto kTogether = std::chrono::milliseconds(2);

// A thread with a real-time policy would keep the Tracer from its processor.
bool may_be_moved(pid_t tid, const cpu_set_t& from) {
    cpu_set_t present;
    if (sched_getaffinity(tid, sizeof present, &present) != 0 || !CPU_EQUAL(&present, &from))
        return false;
    const int policy = sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK;
    return policy != SCHED_FIFO && policy != SCHED_RR;
}

}  // namespace

bool SharedProcessor::prolong() {
    until_ = Clock::now() + kTogether;
    return are_together_;
}

void SharedProcessor::bring_together(const std::vector<pid_t>& testee_threads) {
    if (sched_getaffinity(0, sizeof everywhere_, &everywhere_) != 0 || CPU_COUNT(&everywhere_) < 2)
        return;
    int here = wanted_;
    if (here < 0 || here >= CPU_SETSIZE || !CPU_ISSET(here, &everywhere_)) here = sched_getcpu();
    if (here < 0 || here >= CPU_SETSIZE) return;
    CPU_ZERO(&together_);
    CPU_SET(here, &together_);
    if (sched_setaffinity(0, sizeof together_, &together_) != 0) return;
    are_together_ = true;
    for (const pid_t tid : testee_threads) {
        // A thread that has chosen its processors keeps them.
        if (!independent_.contains(tid) && may_be_moved(tid, everywhere_))
            sched_setaffinity(tid, sizeof together_, &together_);
        else
            unmoved_.push_back(tid);
    }
}

void SharedProcessor::let_apart(const std::vector<pid_t>& all_threads) {
    if (!are_together_) return;
    are_together_ = false;
    sched_setaffinity(0, sizeof everywhere_, &everywhere_);
    for (const pid_t tid : all_threads) {
        if (std::ranges::count(unmoved_, tid) == 0) let_newborn_apart(tid);
    }
    unmoved_.clear();
}

bool SharedProcessor::is_over() const {
    return !to_the_end_ && are_together_ && Clock::now() >= until_;
}

void SharedProcessor::let_newborn_apart(pid_t tid) {
    if (!are_together_ && !independent_.contains(tid) && may_be_moved(tid, together_))
        sched_setaffinity(tid, sizeof everywhere_, &everywhere_);
}

void SharedProcessor::note_own_processors(pid_t tid) {
    if (!independent_.insert(tid).second) return;
    if (are_together_ && may_be_moved(tid, together_))
        sched_setaffinity(tid, sizeof everywhere_, &everywhere_);
}

}  // namespace kmes::conformance::tracing
