// SPDX-License-Identifier: MIT
//
// Detects a testee that does no work for a long time although it is not blocked for good. Such a
// testee may still attach, be woken by its own threads, and write comments.
#ifndef KMES_CONFORMANCE_STAGE_IDLE_WATCH_H_
#define KMES_CONFORMANCE_STAGE_IDLE_WATCH_H_

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <map>

#include "conformance/tracer/patience.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance {

struct StageParts;

class IdleWatch {
  public:
    // Call it in every iteration of a wait. Returns true if the testee did no work for `long_time`,
    // and at most checks every thread was calm. A calm thread is blocked, repeats short waits on
    // ring words, or hardly runs. (Of many threads with short waits, one is always awake.)
    bool check(const StageParts& parts, std::chrono::milliseconds long_time);

  private:
    // A thread since the last work of the testee, or since it was seen first.
    struct Since {
        TimePoint at;
        ProcessorTime time;
        unsigned checks = 0;
        unsigned blocked_checks = 0;
    };
    bool is_mostly_idle(pid_t tid, std::size_t attaches) const;

    TimePoint since_;  // the last work, at the last reset of these fields
    TimePoint begin_;  // the time of that reset
    TimePoint checked_at_;
    std::size_t attaches_ = 0;  // at begin_
    std::map<pid_t, Since> threads_;
    unsigned checks_ = 0;
    unsigned calm_checks_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_IDLE_WATCH_H_
