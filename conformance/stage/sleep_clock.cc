// SPDX-License-Identifier: MIT
#include "conformance/stage/sleep_clock.h"

#include <time.h>

#include <algorithm>
#include <cerrno>

namespace kmes::conformance {

std::optional<Clock::duration> limit_of(const FutexWait& wait) {
    using std::chrono::nanoseconds;
    if (wait.limit == TimeLimit::kNone) return std::nullopt;
    if (wait.limit == TimeLimit::kRelative) return nanoseconds(wait.limit_ns);
    timespec now{};
    clock_gettime(wait.limit_clock, &now);
    return nanoseconds(wait.limit_ns) - std::chrono::seconds(now.tv_sec) - nanoseconds(now.tv_nsec);
}

void SleepClock::enter(const FutexWait& wait) {
    sleeps_[wait.tid] = {Clock::now(), limit_of(wait)};
}

void SleepClock::leave(const FutexWaitEnd& end) {
    const auto found = sleeps_.find(end.tid);
    if (found == sleeps_.end()) return;
    ++waits_;
    const bool has_slept = end.result >= 0 || end.result == -ETIMEDOUT || end.result == -EINTR;
    if (has_slept) slept_ += time_in(found->second);
    sleeps_.erase(found);
}

Clock::duration SleepClock::slept() const {
    Clock::duration all = slept_;
    for (const auto& [tid, sleep] : sleeps_) all += time_in(sleep);
    return all;
}

Clock::duration SleepClock::time_in(const Sleep& sleep) {
    const Clock::duration passed = Clock::now() - sleep.begin;
    if (!sleep.limit) return passed;
    return std::clamp(*sleep.limit, Clock::duration::zero(), passed);
}

}  // namespace kmes::conformance
