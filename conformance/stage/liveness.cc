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

// The longest time of one wait, and the time without a change after which a testee with timers
// counts as hung. kLimit and kSettle are multiplied by --timeout-scale. No correct consumer needs
// so long.
constexpr milliseconds kLimit{30000};
constexpr std::chrono::hours kDebugLimit{1000};
constexpr milliseconds kSettle{4000};
// kSettle before the testee has mapped a buffer, and after the last event. The specification names
// no time for these.
constexpr milliseconds kSettleWithoutBuffer{15000};
// The additional time for each CPU: one thread may wait 100 ms on each CPU in turn (contract).
constexpr milliseconds kSettleOfACpu{150};
// The least share of these times that a consumer gets after it has hung in earlier cases.
constexpr double kLeastPatienceOfTimedWaits = 1.0 / 8;
// The processor time after which a consumer counts as spinning.
constexpr milliseconds kSpin{20000};
// The interval of the checks. No verdict depends on it: it only saves checks.
constexpr milliseconds kLivenessCheckInterval{15};
constexpr unsigned kLivenessLeastChecks = 100;

}  // namespace

milliseconds Liveness::time_to_hang(Stall stall) const {
    const bool has_no_buffer = !parts_.buffers.has_mapped_any() ||
                               (parts_.ending.has_begun() && !parts_.ending.may_stay());
    const milliseconds time = stall == Stall::timed_waits && has_no_buffer ? kSettleWithoutBuffer
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
    // Actions of the testee before the producer's last operation do not show its reaction to that
    // operation.
    const std::uint64_t operations = parts_.rings->history().operations();
    if (std::exchange(operations_seen_, operations) != operations) clock.note_work();
    if (Clock::now() - clock.last_change() < kLivenessCheckInterval) return Stall::none;
    // Each access that is only recorded ends a wait of the runner. A check of all threads costs far
    // more than an access.
    if (accesses_seen_ != parts_.guards.accesses_recorded() &&
        Clock::now() - last_check_ < kLivenessCheckInterval)
        return Stall::none;
    accesses_seen_ = parts_.guards.accesses_recorded();
    last_check_ = Clock::now();
    const Inspection inspection = parts_.testee.tracer().inspect();
    // A record that it wrote before it blocked is progress too.
    parts_.testee.read_report();
    // The runner mostly sees the stops of a thread whose waits are short.
    const auto rests = [this](const ThreadState& thread) {
        return is_out_of_the_way(thread) || (thread.activity == Activity::kHeld &&
                                             thread.tid == parts_.wait_log.between_waits());
    };
    const bool nothing_runs =
        !inspection.threads.empty() &&  // no threads: it has ended, which wait() is about to report
        std::all_of(inspection.threads.begin(), inspection.threads.end(), rests);
    const TimePoint now = Clock::now();
    if (change_at_check_ != clock.last_change()) {
        checks_ = quiet_checks_ = 0;
        processor_time_before_ = used();
    }
    change_at_check_ = clock.last_change();
    if (now - clock.last_change() < kLivenessCheckInterval) return Stall::none;
    const bool for_good = inspection.all_blocked_for_good && !inspection.other_processes;
    if (for_good && !(must_be_sure && inspection.others_may_end_it)) return Stall::for_good;
    // Timers or other processes may still wake a thread. Then the time decides, and also the
    // checks, most of which must have found the testee blocked. (The time alone does not decide,
    // because the runner may have been descheduled.)
    ++checks_;
    quiet_checks_ += nothing_runs ? 1 : 0;
    if (checks_ > kLivenessLeastChecks && quiet_checks_ * 10 > checks_ * 8 && nothing_runs &&
        now - clock.last_change() > time_to_hang(Stall::timed_waits))
        return for_good ? Stall::for_good : Stall::timed_waits;
    if (!parts_.settings.debug && used() - processor_time_before_ > time_to_hang(Stall::spinning))
        return Stall::spinning;
    return Stall::none;
}

bool Liveness::check_for_rest() {
    const Stall stall = find_stall();
    return stall == Stall::timed_waits || stall == Stall::for_good ||
           idle_.check(parts_, time_to_hang(Stall::timed_waits));
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
