// SPDX-License-Identifier: MIT
//
// See smoke_patience.h.
#include "conformance/main/smoke_patience.h"

#include <fmt/format.h>

#include <algorithm>

#include "conformance/stage/state_text.h"
#include "conformance/tracer/tracer.h"

namespace kmes::conformance {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kCheckEvery{20};
// A testee that is blocked for good at this many checks in a row has nothing more to say.
constexpr unsigned kQuietChecks = 5;

}  // namespace

SmokePatience::SmokePatience(Tracer& tracer, milliseconds limit)
    : tracer_(tracer), limit_(limit), patience_(limit) {}

void SmokePatience::note_progress() {
    patience_.restart();
    is_over_ = false;
    quiet_checks_ = 0;
    checks_ = resting_checks_ = 0;
}

std::string SmokePatience::why_hopeless() {
    const TimePoint now = Clock::now();
    is_over_ = patience_.is_over(tracer_.testee_threads());
    if (is_over_ && has_rested()) return no_progress();
    if (now - last_check_ < kCheckEvery) return {};
    last_check_ = now;
    const Inspection inspection = tracer_.inspect();
    ++checks_;
    if (is_resting(inspection)) ++resting_checks_;
    const bool for_good =
        tracer_.testee_pid() != 0 && inspection.all_blocked_for_good && !inspection.other_processes;
    quiet_checks_ = for_good ? quiet_checks_ + 1 : 0;
    return quiet_checks_ >= kQuietChecks ? "all threads are blocked for good" : std::string();
}

// Before the first attach a launcher may sleep while its child, the later consumer, still works.
bool SmokePatience::is_resting(const Inspection& inspection) const {
    if (tracer_.testee_pid() != 0)
        return std::ranges::all_of(inspection.threads, is_out_of_the_way);
    return std::ranges::all_of(tracer_.testee_threads(), [this](pid_t tid) {
        const Activity activity = tracer_.activity(tid);
        return activity == Activity::kBlocked || activity == Activity::kEnded;
    });
}

// A program that sleeps waits for something. A program that works may be slow, such as an
// interpreter that loads its modules on a busy machine. It gets time up to the limit of the run.
bool SmokePatience::has_rested() const {
    return checks_ > 0 && resting_checks_ * 10 >= checks_ * 8;
}

std::string SmokePatience::no_progress() const {
    return fmt::format("no progress in {} ms", limit_.count());
}

}  // namespace kmes::conformance
