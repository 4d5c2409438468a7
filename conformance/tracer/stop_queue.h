// SPDX-License-Identifier: MIT
//
// The stops and ends of threads as the kernel reports them, and the backlog of those that are
// handled later. Knows no meaning of a stop.

#ifndef CONFORMANCE_TRACER_STOP_QUEUE_H_
#define CONFORMANCE_TRACER_STOP_QUEUE_H_

#include <sys/types.h>

#include <deque>
#include <functional>
#include <optional>

#include "conformance/tracer/deadline.h"
#include "conformance/tracer/thread.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance::tracing {

// As waitpid returns it.
struct Received {
    pid_t tid = 0;
    int status = 0;
};

// Belongs to the thread that makes it.
class StopQueue {
  public:
    // The next stop or end from the kernel; nothing at the deadline, or without children.
    std::optional<Received> receive(TimePoint deadline);
    // The last receive() found that this thread has no children.
    bool is_childless() const { return is_childless_; }
    // This thread has children or tracees. Receives nothing.
    bool has_children() const;

    // Adds the stop or the end of this thread to the backlog.
    void put_off(Thread& thread, int status);
    // Removes the first entry of the backlog that is `ready`, and returns it; nothing if none is.
    std::optional<Received> take_first(const std::function<bool(const Received&)>& is_ready);
    // Drops the stops of the thread, and keeps its end. Returns true if there was one.
    bool drop_stops(Thread& thread);
    // Drops the entries for which `is_void` returns true. The caller updates the records of the
    // threads.
    void drop_if(const std::function<bool(const Received&)>& is_void);
    bool is_backlog_empty() const { return backlog_.empty(); }
    void clear_backlog() { backlog_.clear(); }

  private:
    DeadlineTimer timer_;
    bool is_childless_ = false;
    std::deque<Received> backlog_;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_STOP_QUEUE_H_
