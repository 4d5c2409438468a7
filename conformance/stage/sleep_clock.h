// SPDX-License-Identifier: MIT
//
// Measures how long the threads of a testee sleep on ring words. A sleep counts at most up to its
// limit, because a busy machine may prolong it. Knows no rings.
#ifndef KMES_CONFORMANCE_STAGE_SLEEP_CLOCK_H_
#define KMES_CONFORMANCE_STAGE_SLEEP_CLOCK_H_

#include <cstdint>
#include <map>
#include <optional>

#include "conformance/tracer/tracer.h"

namespace kmes::conformance {

// Returns the time until the limit of the wait, negative if that has passed. Nothing: it has no
// limit.
std::optional<Clock::duration> limit_of(const FutexWait& wait);

class SleepClock {
  public:
    // Note the entry into a wait, and its end with the result of the call. A wait that was refused,
    // or found another value, does not count as sleep.
    void enter(const FutexWait& wait);
    void leave(const FutexWaitEnd& end);
    // Returns the sum of all sleeps of all threads, also of the current ones.
    Clock::duration slept() const;
    // The number of waits that have ended, also without sleep, and the sleep in them.
    std::uint64_t waits_ended() const { return waits_; }
    Clock::duration slept_in_ended() const { return slept_; }

  private:
    struct Sleep {
        TimePoint begin;
        std::optional<Clock::duration> limit;
    };
    static Clock::duration time_in(const Sleep& sleep);

    std::map<pid_t, Sleep> sleeps_;  // the current ones
    Clock::duration slept_{};
    std::uint64_t waits_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_SLEEP_CLOCK_H_
