// SPDX-License-Identifier: MIT
//
// Whether nothing has come of the testee for a long time although it is not blocked for good: it
// may attach meanwhile, be woken by its own threads, write comments. That is its own affair.
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
    // To be asked again and again. Nothing has come of the testee for `long_time`, and at most
    // looks each thread was blocked, or went from one short wait on a ring word to the next: of
    // many such threads one is always awake.
    bool idles(const StageParts& parts, std::chrono::milliseconds long_time);

  private:
    // Of each thread since nothing has come of the testee, or since it was seen first.
    struct Since {
        TimePoint at;
        ProcessorTime time;
        unsigned looks = 0;
        unsigned blocked_looks = 0;
    };
    bool hardly_runs(pid_t tid, std::size_t attaches) const;

    TimePoint since_;  // the last work when all of these were set back
    TimePoint begin_;  // when that was
    TimePoint looked_at_;
    std::size_t attaches_ = 0;  // at the begin
    std::map<pid_t, Since> threads_;
    unsigned looks_ = 0;
    unsigned calm_looks_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_IDLE_WATCH_H_
