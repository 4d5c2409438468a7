// SPDX-License-Identifier: MIT
//
// See holding.h.
#include "conformance/stage/holding.h"

#include <vector>

#include "conformance/stage/stage_parts.h"
#include "conformance/stage/stop.h"
#include "conformance/tracer/patience.h"

namespace kmes::conformance {

namespace {

// The interval of the checks of the condition.
constexpr std::chrono::milliseconds kHoldingPoll{3};

}  // namespace

void Holding::freeze() {
    if (!parts_.testee.tracer().freeze_all(Clock::now() + parts_.liveness.limit()) &&
        !parts_.events.has_gone_or_stop()) {
        stop_inconclusive("a thread of the consumer could not be stopped in time");
    }
    is_frozen_ = true;
    parts_.testee.read_report();
    parts_.recorder.scheduled("the suite stops all threads of the consumer");
}

void Holding::thaw() {
    is_frozen_ = false;
    parts_.clock.note_work();
    parts_.recorder.scheduled("the suite continues all threads");
    parts_.testee.tracer().thaw_all();
}

void Holding::hold_while(pid_t tid, const std::function<bool()>& condition,
                         std::chrono::milliseconds at_most) {
    const Testee& testee = parts_.testee;
    const auto others = [&] {
        std::vector<pid_t> threads = testee.tracer().testee_threads();
        std::erase(threads, tid);
        return threads;
    };
    Patience patience(at_most);
    parts_.recorder.scheduled("the suite stops this thread", tid);
    testee.tracer().hold(tid);
    // Resumes the thread in any case, also if it was held before.
    while (!testee.is_single_thread() && !testee.end() && condition() &&
           !patience.is_over(others()))
        parts_.events.pump(Clock::now() + kHoldingPoll);
    testee.tracer().release(tid);
    parts_.recorder.scheduled("the suite continues this thread", tid);
    parts_.clock.note_work();
    if (testee.end()) parts_.events.has_gone_or_stop();
}

}  // namespace kmes::conformance
