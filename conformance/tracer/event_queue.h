// SPDX-License-Identifier: MIT
//
// The events that wait() has not returned yet. Knows no kinds of events.

#ifndef CONFORMANCE_TRACER_EVENT_QUEUE_H_
#define CONFORMANCE_TRACER_EVENT_QUEUE_H_

#include <sys/types.h>

#include <deque>
#include <utility>

#include "conformance/tracer/events.h"
#include "conformance/tracer/thread.h"

namespace kmes::conformance::tracing {

class EventQueue {
  public:
    // Adds an event for which the thread stays stopped, and counts it in the thread's record.
    void push(Thread& thread, TracerEvent event) {
        ++thread.queued_events;
        events_.emplace_back(thread.tid, std::move(event));
    }
    void push(TracerEvent event) { events_.emplace_back(0, std::move(event)); }

    bool is_empty() const { return events_.empty(); }
    // Before: it is not empty. The caller updates the count in the record of last_thread().
    TracerEvent pop() {
        auto [tid, event] = std::move(events_.front());
        events_.pop_front();
        last_thread_ = tid;
        return std::move(event);
    }
    // The thread of the last event taken; 0: none.
    pid_t last_thread() const { return last_thread_; }
    void clear() { events_.clear(); }

  private:
    std::deque<std::pair<pid_t, TracerEvent>> events_;
    pid_t last_thread_ = 0;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_EVENT_QUEUE_H_
