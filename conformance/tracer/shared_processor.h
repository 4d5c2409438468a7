// SPDX-License-Identifier: MIT
//
// Keeps the testee and the thread of the Tracer on one processor while they take turns. They do so
// while pages are guarded, or the testee executes calls for the tracer (attach, the mapping of a
// buffer). A turn on another processor must wake it, which takes two to five times as long as a
// stop. Otherwise everything runs where the kernel puts it, in parallel to the producer.
//
// Only for speed: a thread that cannot be moved stays where it is. Knows threads by their numbers.

#ifndef CONFORMANCE_TRACER_SHARED_PROCESSOR_H_
#define CONFORMANCE_TRACER_SHARED_PROCESSOR_H_

#include <sched.h>
#include <sys/types.h>

#include <set>
#include <vector>

#include "conformance/tracer/types.h"

namespace kmes::conformance::tracing {

class SharedProcessor {
  public:
    // The processor to share; -1: the current one of the calling thread. With `to_the_end` the
    // sharing never ends by itself.
    SharedProcessor(int wanted, bool to_the_end) : wanted_(wanted), to_the_end_(to_the_end) {}

    // Starts or prolongs the sharing. Returns whether the threads share the processor already.
    bool prolong();
    // Before: prolong() has returned false.
    void share(const std::vector<pid_t>& testee_threads);
    // Moves all threads back at once. Does nothing if no processor is shared.
    void restore(const std::vector<pid_t>& all_threads);
    // The time of sharing is over: unless pages are guarded, the caller calls restore().
    bool is_over() const;
    // Ends the time of sharing; see is_over().
    void end() { until_ = {}; }

    // A new thread inherits the one processor from its parent. This moves it back if the tracer
    // hears of it only after the others were moved back.
    void restore_new_thread(pid_t tid);
    // The testee is about to choose the processors of a thread, which may be the shared one. If the
    // call fails, the thread keeps those that it had.
    void note_own_processors(pid_t tid);

  private:
    int wanted_;
    bool to_the_end_;
    bool is_shared_ = false;      // testee and Tracer, on one processor
    cpu_set_t shared_ = {};       // the current or last processor that they shared; empty: none yet
    cpu_set_t everywhere_ = {};   // the processors that the thread of the Tracer may use otherwise
    std::vector<pid_t> unmoved_;  // while the others share
    std::set<pid_t> independent_;  // they have chosen their processors
    TimePoint until_ = {};         // longer while pages are guarded
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_SHARED_PROCESSOR_H_
