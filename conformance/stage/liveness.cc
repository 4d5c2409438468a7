// SPDX-License-Identifier: MIT
//
// See liveness.h.
#include "conformance/stage/liveness.h"

#include <algorithm>
#include <utility>

#include "conformance/stage/stage_parts.h"

namespace kmes::conformance {

namespace {

using std::chrono::milliseconds;

// How long one wait may take before it is called a failure, and how long nothing may move before a
// testee with timers is called hung; both times --timeout-scale. No correct consumer comes near.
constexpr milliseconds kLimit{30000};
constexpr std::chrono::hours kDebugLimit{1000};
constexpr milliseconds kSettle{4000};
// The same before it has mapped a buffer, and after the last event: the specification names no time
// for them.
constexpr milliseconds kSettleElsewhere{15000};
// And for each CPU: one thread may wait 100 ms at one after the other (contract).
constexpr milliseconds kSettleOfACpu{150};
// The least share of these times that a consumer gets after it has hung in earlier cases.
constexpr double kLeastPatienceOfTimedWaits = 1.0 / 8;
// The same for a consumer that uses the processor: so much of that.
constexpr milliseconds kSpin{20000};
// Before a look at the threads: no verdict, only a saving of looks.
constexpr milliseconds kLivenessLookEvery{15};
constexpr unsigned kLivenessLooks = 100;

}  // namespace

milliseconds Liveness::time_to_hang(Stall stall) const {
    const bool has_no_buffer = !parts_.buffers.has_mapped_any() ||
                               (parts_.ending.has_begun() && !parts_.ending.may_stay());
    const milliseconds time = stall == Stall::timed_waits && has_no_buffer ? kSettleElsewhere
                              : stall == Stall::timed_waits
                                  ? kSettle + parts_.cpus() * kSettleOfACpu
                              : stall == Stall::spinning ? kSpin
                                                         : kLimit;
    // A consumer may sleep with a limit of 100 ms, so a series of such waits gets more time.
    const double patience = stall == Stall::timed_waits
                                ? std::max(parts_.settings.patience, kLeastPatienceOfTimedWaits)
                                : parts_.settings.patience;
    return scaled(time, parts_.settings.timeout_scale * patience);
}

Clock::duration Liveness::limit() const {
    if (parts_.settings.debug) return kDebugLimit;
    return scaled(kLimit, parts_.settings.timeout_scale);
}

Stall Liveness::find_stall(bool must_be_sure) {
    WorkClock& clock = parts_.clock;
    const auto used = [this] { return parts_.testee.processor_time().value_or(Clock::duration{}); };
    // What it did before the producer's last operation says nothing of what it makes of that.
    const std::uint64_t operations = parts_.rings->history().operations();
    if (std::exchange(operations_seen_, operations) != operations) clock.note_work();
    if (Clock::now() - clock.last_change() < kLivenessLookEvery) return Stall::none;
    // Each access that is only recorded ends a wait of the runner: a look at all threads after each
    // took ten times as long as the access.
    if (accesses_seen_ != parts_.guards.accesses_recorded() &&
        Clock::now() - last_look_ < kLivenessLookEvery)
        return Stall::none;
    accesses_seen_ = parts_.guards.accesses_recorded();
    last_look_ = Clock::now();
    const Inspection inspection = parts_.testee.tracer().inspect();
    // What it wrote before it blocked is progress too.
    parts_.testee.read_report();
    // The runner sees little else than the stops of a thread whose waits are short.
    const auto rests = [this](const ThreadState& thread) {
        return is_out_of_the_way(thread) || (thread.activity == Activity::kHeld &&
                                             thread.tid == parts_.wait_log.between_waits());
    };
    const bool nothing_runs =
        !inspection.threads.empty() &&  // none: it has ended, which wait() is about to say
        std::all_of(inspection.threads.begin(), inspection.threads.end(), rests);
    const TimePoint now = Clock::now();
    if (change_at_look_ != clock.last_change()) {
        looks_ = quiet_looks_ = 0;
        processor_time_before_ = used();
    }
    change_at_look_ = clock.last_change();
    if (now - clock.last_change() < kLivenessLookEvery) return Stall::none;
    const bool for_good = inspection.all_blocked_for_good && !inspection.other_processes;
    if (for_good && !(must_be_sure && inspection.others_may_end_it)) return Stall::for_good;
    // Timers, or processes that could wake it: then it is a matter of time, and of looks, of which
    // most found it blocked. (Time alone may have passed for the runner as well.)
    ++looks_;
    quiet_looks_ += nothing_runs ? 1 : 0;
    if (looks_ > kLivenessLooks && quiet_looks_ * 10 > looks_ * 8 && nothing_runs &&
        now - clock.last_change() > time_to_hang(Stall::timed_waits))
        return for_good ? Stall::for_good : Stall::timed_waits;
    if (!parts_.settings.debug && used() - processor_time_before_ > time_to_hang(Stall::spinning))
        return Stall::spinning;
    return Stall::none;
}

bool Liveness::is_at_rest() {
    const Stall stall = find_stall();
    return stall == Stall::timed_waits || stall == Stall::for_good ||
           idle_.idles(parts_, time_to_hang(Stall::timed_waits));
}

void Liveness::note_attach(const Attached& event) {
    History& history = parts_.rings->history();
    // The history counts an attach among its operations, but the producer has done nothing.
    const bool was_seen = operations_seen_ == history.operations();
    for (const BufferId id : event.buffers)
        history.note_attached(parts_.buffers.index_of(id).value());
    if (was_seen) operations_seen_ = history.operations();
    attaches_again_.note(history.buffer_count());
}

void Liveness::note_mapped_again() {
    maps_again_.note(parts_.rings->history().buffer_count());
}

std::uint64_t Liveness::attaches_again() const {
    return attaches_again_.count(parts_.rings->history().buffer_count());
}

std::uint64_t Liveness::maps_again() const {
    return maps_again_.count(parts_.rings->history().buffer_count());
}

}  // namespace kmes::conformance
