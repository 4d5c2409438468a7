// SPDX-License-Identifier: MIT
//
// The processor's watchpoints as a second witness of single steps. Four of them cover words of a
// guarded metadata page. After each step, the processor's report is checked against the predicted
// accesses. Watchpoints trap after an access, and there are only four. So they see no data, no
// access of the kernel, and nothing beforehand. They check the stepper and cannot replace it. Knows
// the offsets of the page (5.1.6), and threads by their numbers.

#ifndef CONFORMANCE_TRACER_WATCHPOINTS_H_
#define CONFORMANCE_TRACER_WATCHPOINTS_H_

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "conformance/tracer/pending_access.h"
#include "conformance/tracer/tracer.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance::tracing {

// The page that the watchpoints of one thread cover, and the step that they check next.
struct WatchedStep {
    uint64_t page = 0;                  // its address; 0: none is covered
    std::vector<RingOperand> expected;  // of the instruction that the thread was resumed for
    CodePlace place;
};

class Watchpoints {
  public:
    // `is_blind`: ignore what the stepper has seen (for tests).
    Watchpoints(bool is_used, bool is_blind);

    bool is_used() const { return is_used_; }
    const WatchCheck& check() const { return check_; }
    // Makes the thread's watchpoints cover the page at this address; 0: no page. Watchpoints belong
    // to a thread, and its children do not inherit them.
    void arm(pid_t tid, WatchedStep& step, uint64_t page);
    // Checks a step of the thread: `expected` has the accesses that were predicted before the step.
    void check_step(pid_t tid, uint64_t page, const std::vector<RingOperand>& expected,
                    const CodePlace& place);

  private:
    bool is_used_;
    bool is_blind_;
    WatchCheck check_;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_WATCHPOINTS_H_
