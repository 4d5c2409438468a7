// SPDX-License-Identifier: MIT
//
// See stop_queue.h.

#include "conformance/tracer/stop_queue.h"

#include <sys/wait.h>

#include <algorithm>
#include <cerrno>

namespace kmes::conformance::tracing {

std::optional<Received> StopQueue::receive(TimePoint deadline) {
    const auto received = timer_.wait(deadline);
    is_childless_ = received && received->first < 0 && received->second == ECHILD;
    if (!received || received->first < 0) return std::nullopt;
    return Received{received->first, received->second};
}

bool StopQueue::has_children() const {
    siginfo_t first{};
    const int kinds = WEXITED | WSTOPPED | WNOHANG | WNOWAIT | __WALL | __WNOTHREAD;
    return waitid(P_ALL, 0, &first, kinds) == 0;
}

void StopQueue::put_off(Thread& thread, int status) {
    thread.in_backlog = true;
    // After its end, the thread has no further stop.
    if (!WIFSTOPPED(status)) thread.is_zombie = true;
    backlog_.push_back({thread.tid, status});
}

std::optional<Received> StopQueue::take_first(
    const std::function<bool(const Received&)>& is_ready) {
    const auto found = std::find_if(backlog_.begin(), backlog_.end(), is_ready);
    if (found == backlog_.end()) return std::nullopt;
    const Received received = *found;
    backlog_.erase(found);
    return received;
}

bool StopQueue::drop_stops(Thread& thread) {
    const bool dropped = std::erase_if(backlog_, [&](const Received& entry) {
                             return entry.tid == thread.tid && WIFSTOPPED(entry.status);
                         }) != 0;
    thread.in_backlog = std::any_of(backlog_.begin(), backlog_.end(),
                                    [&](const Received& entry) { return entry.tid == thread.tid; });
    return dropped;
}

void StopQueue::drop_if(const std::function<bool(const Received&)>& is_void) {
    std::erase_if(backlog_, is_void);
}

}  // namespace kmes::conformance::tracing
