// SPDX-License-Identifier: MIT
//
// The times of the last change and of the last work of the testee or the producer. The limits of
// waits count from there. Knows no testee: the stage reports each action.
#ifndef KMES_CONFORMANCE_STAGE_WORK_CLOCK_H_
#define KMES_CONFORMANCE_STAGE_WORK_CLOCK_H_

#include <chrono>
#include <cstdint>

#include "conformance/tracer/types.h"

namespace kmes::conformance {

// A limit after --timeout-scale.
inline std::chrono::milliseconds scaled(std::chrono::milliseconds time, double scale) {
    return std::chrono::milliseconds(
        static_cast<std::int64_t>(static_cast<double>(time.count()) * scale));
}

class WorkClock {
  public:
    // Both clocks begin now.
    WorkClock() : last_change_(Clock::now()), last_work_(last_change_) {}

    // Notes an action that an idle testee repeats too: a wait, an attach, or the mapping of a
    // buffer that it has mapped before.
    void note_change() { last_change_ = Clock::now(); }
    // Notes an action that an idle testee does not repeat.
    void note_work() { last_change_ = last_work_ = Clock::now(); }
    // The runner was descheduled for this long, which does not count as idle time of the testee.
    void exclude(Clock::duration late) {
        last_change_ += late;
        last_work_ += late;
    }

    TimePoint last_change() const { return last_change_; }
    TimePoint last_work() const { return last_work_; }
    bool is_still_for(Clock::duration time) const { return Clock::now() - last_change_ > time; }

  private:
    TimePoint last_change_;
    TimePoint last_work_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_WORK_CLOCK_H_
