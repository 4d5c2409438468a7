// SPDX-License-Identifier: MIT
//
// Keeps the testee and the thread of the Tracer on one processor while they take turns: pages are
// guarded, or the testee executes calls for the tracer (attach, the mapping of a buffer). A turn on
// another processor must wake it, which takes two to five times as long as a stop. Otherwise
// everything runs where the kernel puts it, in parallel to the producer.
//
// Only for speed: a thread that cannot be moved stays where it is. Knows guards and threads.

#include <sched.h>

#include <algorithm>

#include "conformance/tracer/engine.h"

namespace kmes::conformance {
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
        // A thread that has chosen its processors keeps them.
        if (!unmoved_.for_good.contains(tid) && may_be_moved(tid, all_processors_))
            sched_setaffinity(tid, sizeof together_, &together_);
        else
            unmoved_.now.push_back(tid);
    }
}

void Tracer::Engine::let_apart() {
    if (!are_together_) return;
    are_together_ = false;
    sched_setaffinity(0, sizeof all_processors_, &all_processors_);
    for (const auto& [tid, thread] : threads_) {
        if (std::ranges::count(unmoved_.now, tid) == 0) let_newborn_apart(tid);
    }
    unmoved_.now.clear();
}

// A new thread inherits the one processor from its parent. This moves it back if the tracer hears
// of it only after the others were moved back.
void Tracer::Engine::let_newborn_apart(pid_t tid) {
    if (!are_together_ && !unmoved_.for_good.contains(tid) && may_be_moved(tid, together_))
        sched_setaffinity(tid, sizeof all_processors_, &all_processors_);
}

// The testee is about to choose the processors of a thread, which may be the one where all are
// together. If the call fails, the thread keeps those that it had.
void Tracer::Engine::note_own_processors(pid_t tid) {
    if (threads_.count(tid) == 0 || !unmoved_.for_good.insert(tid).second) return;
    if (are_together_ && may_be_moved(tid, together_))
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
