// SPDX-License-Identifier: MIT
//
// The testee and the thread of the Tracer on one processor, for as long as they take turns: pages
// are guarded, or calls are executed in the testee (attach, the mapping of a buffer). A turn that
// goes to another processor has to wake it: twice to five times the time of a stop. Otherwise
// everything runs where the kernel puts it, beside the producer.
//
// For speed only: what cannot be moved stays. Knows guards and threads.

#include <sched.h>

#include <algorithm>

#include "conformance/tracer/engine.h"

namespace kmes::conformance {
namespace {

// So long behind the last call that was executed in the testee, it may map another buffer soon.
constexpr auto kTogether = std::chrono::milliseconds(2);

// One with a real-time policy would keep the Tracer from its processor.
bool may_be_moved(pid_t tid, const cpu_set_t& from) {
    cpu_set_t present;
    if (sched_getaffinity(tid, sizeof present, &present) != 0 || !CPU_EQUAL(&present, &from))
        return false;
    const int policy = sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK;
    return policy != SCHED_FIFO && policy != SCHED_RR;
}

}  // namespace

void Tracer::Engine::bring_together() {
    together_until_ = Clock::now() + kTogether;
    if (are_together_) return;
    if (sched_getaffinity(0, sizeof all_processors_, &all_processors_) != 0 ||
        CPU_COUNT(&all_processors_) < 2)
        return;
    int here = options_.processor;
    if (here < 0 || here >= CPU_SETSIZE || !CPU_ISSET(here, &all_processors_))
        here = sched_getcpu();
    if (here < 0 || here >= CPU_SETSIZE) return;
    CPU_ZERO(&together_);
    CPU_SET(here, &together_);
    if (sched_setaffinity(0, sizeof together_, &together_) != 0) return;
    are_together_ = true;
    for (const auto& [tid, thread] : threads_) {
        if (!is_testee(thread)) continue;
        // Who has chosen its processors keeps them.
        if (may_be_moved(tid, all_processors_))
            sched_setaffinity(tid, sizeof together_, &together_);
        else
            not_moved_.push_back(tid);
    }
}

void Tracer::Engine::let_apart() {
    if (!are_together_) return;
    are_together_ = false;
    sched_setaffinity(0, sizeof all_processors_, &all_processors_);
    for (const auto& [tid, thread] : threads_) {
        if (std::ranges::count(not_moved_, tid) == 0) let_newborn_apart(tid);
    }
    not_moved_.clear();
}

// What is born of a thread that has been moved inherits the one processor, also if it is only heard
// of when the others have been moved back.
void Tracer::Engine::let_newborn_apart(pid_t tid) {
    if (!are_together_ && may_be_moved(tid, together_))
        sched_setaffinity(tid, sizeof all_processors_, &all_processors_);
}

void Tracer::Engine::part_if_idle() {
    if (options_.pin_to_one_processor) return;  // to the end of the run
    if (are_together_ && Clock::now() >= together_until_ && !any_guards()) let_apart();
}

void Tracer::Engine::go_apart() {
    together_until_ = {};
    part_if_idle();
}

}  // namespace kmes::conformance
