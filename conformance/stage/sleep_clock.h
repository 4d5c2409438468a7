// SPDX-License-Identifier: MIT
//
// How long the threads of a testee sleep on ring words, as far as they asked for it: what a busy
// machine adds to a sleep is not the testee's. Knows no rings.
#ifndef KMES_CONFORMANCE_STAGE_SLEEP_CLOCK_H_
#define KMES_CONFORMANCE_STAGE_SLEEP_CLOCK_H_

#include <cstdint>
#include <map>
#include <optional>

#include "conformance/tracer/tracer.h"

namespace kmes::conformance {

// From now to the end of the wait by its own limit; less than 0 where that has passed. Nothing: it
// has no limit.
std::optional<Clock::duration> limit_of(const FutexWait& wait);

class SleepClock {
  public:
    // At the entry into a wait, and at its end with the result of the call: one that was refused,
    // or found another value, is no sleep; one with a limit counts up to that.
    void enter(const FutexWait& wait);
    void leave(const FutexWaitEnd& end);
    // All sleeps of all threads, those that go on included.
    Clock::duration slept() const;
    // The waits that have ended, those that were no sleep included, and the sleep in them.
    std::uint64_t waits_ended() const { return waits_; }
    Clock::duration slept_in_ended() const { return slept_; }

  private:
    struct Sleep {
        TimePoint begin;
        std::optional<Clock::duration> limit;
    };
    static Clock::duration time_in(const Sleep& sleep);

    std::map<pid_t, Sleep> sleeps_;  // the present ones
    Clock::duration slept_{};
    std::uint64_t waits_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_SLEEP_CLOCK_H_
