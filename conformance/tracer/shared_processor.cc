// SPDX-License-Identifier: MIT
//
// See shared_processor.h.

#include "conformance/tracer/shared_processor.h"

#include <algorithm>

namespace kmes::conformance::tracing {
namespace {

// Within this time after an injected call, the testee may map another buffer.
constexpr auto kSharingTime = std::chrono::milliseconds(2);

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
    until_ = Clock::now() + kSharingTime;
    return is_shared_;
}

void SharedProcessor::share(const std::vector<pid_t>& testee_threads) {
    if (sched_getaffinity(0, sizeof everywhere_, &everywhere_) != 0 || CPU_COUNT(&everywhere_) < 2)
        return;
    int here = wanted_;
    if (here < 0 || here >= CPU_SETSIZE || !CPU_ISSET(here, &everywhere_)) here = sched_getcpu();
    if (here < 0 || here >= CPU_SETSIZE) return;
    CPU_ZERO(&shared_);
    CPU_SET(here, &shared_);
    if (sched_setaffinity(0, sizeof shared_, &shared_) != 0) return;
    is_shared_ = true;
    for (const pid_t tid : testee_threads) {
        // A thread that has chosen its processors keeps them.
        if (!independent_.contains(tid) && may_be_moved(tid, everywhere_))
            sched_setaffinity(tid, sizeof shared_, &shared_);
        else
            unmoved_.push_back(tid);
    }
}

void SharedProcessor::restore(const std::vector<pid_t>& all_threads) {
    if (!is_shared_) return;
    is_shared_ = false;
    sched_setaffinity(0, sizeof everywhere_, &everywhere_);
    for (const pid_t tid : all_threads) {
        if (std::ranges::count(unmoved_, tid) == 0) restore_new_thread(tid);
    }
    unmoved_.clear();
}

bool SharedProcessor::is_over() const {
    return !to_the_end_ && is_shared_ && Clock::now() >= until_;
}

void SharedProcessor::restore_new_thread(pid_t tid) {
    if (!is_shared_ && !independent_.contains(tid) && may_be_moved(tid, shared_))
        sched_setaffinity(tid, sizeof everywhere_, &everywhere_);
}

void SharedProcessor::note_own_processors(pid_t tid) {
    if (!independent_.insert(tid).second) return;
    if (is_shared_ && may_be_moved(tid, shared_))
        sched_setaffinity(tid, sizeof everywhere_, &everywhere_);
}

}  // namespace kmes::conformance::tracing
