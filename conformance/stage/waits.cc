// SPDX-License-Identifier: MIT
//
// Whether the testee sleeps, has come to rest, or hangs; and the waits of a stage, which end by it.
// See stage.h.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <utility>

#include "conformance/oracle/layout.h"
#include "conformance/stage/stage.h"
#include "conformance/tracer/patience.h"

namespace kmes::conformance {

namespace {

using std::chrono::milliseconds;

// How long one wait may take before it is called a failure, and how long nothing may move before a
// testee with timers is called hung; both times --timeout-scale. No correct consumer comes near.
constexpr milliseconds kLimit{30000};
constexpr std::chrono::hours kDebugLimit{1000};
constexpr milliseconds kSettle{4000};
// Before it has mapped a buffer, and behind the last event: nothing is said there of time.
constexpr milliseconds kSettleElsewhere{15000};
// And for each CPU: one thread may wait 100 ms at one after the other (contract).
constexpr milliseconds kSettleOfACpu{150};
// The least share of these times that a consumer gets after it has hung in earlier cases.
constexpr double kLeastPatienceOfTimedWaits = 1.0 / 8;
// The same for one that uses the processor: so much of that.
constexpr milliseconds kSpin{20000};
// Before a look at the threads: no verdict, only a saving of looks.
constexpr milliseconds kLookEvery{15};
constexpr unsigned kLooks = 100;
constexpr unsigned kIdleLooks = 20;
// E19: a retired buffer is nudged at growing intervals, from this one on, while something is owed.
constexpr milliseconds kFirstNudge{50};
// A thread whose last wait with a limit began no longer ago comes and goes between such waits.
constexpr milliseconds kNap{1000};
// How long a thread that has begun to sleep may take until it does.
constexpr milliseconds kFallAsleep{1000};
constexpr unsigned kNudgesOfOneBuffer = 10;
// Accesses that are stopped at, in one wait, without a record and without an action of the
// producer.
constexpr std::uint64_t kHitsOfAStandstill = 400'000;
// Calls of kmes_attach while no buffer is replaced. A limit of time would take minutes: most of
// what it spends so is the suite's own, which serves, maps and guards.
constexpr std::uint64_t kAttachesOfAStandstill = 5000;

}  // namespace

// -- Sleep -----------------------------------------------------------------------------------

// A wait is told at its entry, and begins again behind each stop of all threads; the kernel has the
// thread asleep a little later. What the producer does before that wakes nobody: the wait finds
// another value then. For a short while: no verdict hangs on it.
void Stage::let_fall_asleep(std::uint32_t cpu) {
    constexpr std::chrono::microseconds kMoment{50};
    const TimePoint end = Clock::now() + scaled(kFallAsleep, settings_.timeout_scale);
    while (!ended_ && Clock::now() < end) {
        const WaitLog::Wait* wait = waits_.wait_on(cpu, rings_->history().present_buffer(cpu));
        if (wait == nullptr) return;
        const Activity activity = tracer_->activity(wait->wait.tid);
        if (activity == Activity::kBlocked || activity == Activity::kEnded) return;
        pump(Clock::now() + kMoment);
    }
}

// Before the producer does anything. In the middle of what comes at an event of the tracer, threads
// stand still for it. What comes meanwhile may stop them all again.
void Stage::let_fall_asleep_again() {
    constexpr int kMostTimes = 16;
    if (!tracer_ || is_in_pump_ || frozen_) return;
    for (int i = 0; i < kMostTimes; ++i) {
        const std::uint64_t freezes = tracer_->freezes();
        if (std::exchange(freezes_slept_through_, freezes) == freezes) return;
        for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) let_fall_asleep(cpu);
    }
}

// What a sleeper without a limit cannot owe any more is owed in the report (see
// History::checkpoint_idle for the conditions).
void Stage::take_checkpoint(std::uint32_t cpu) {
    if (!waits_.proves_idle(cpu)) return;
    read_report();
    rings_->history().checkpoint_idle(cpu, rings_->history().present_buffer(cpu),
                                      parser_.bytes_fed());
}

void Stage::check_monitors() const {
    for (const auto& monitor : monitors_) {
        if (std::optional<Finding> finding = monitor->fault()) stop_with(*finding);
    }
}

// -- Waits -----------------------------------------------------------------------------------

milliseconds Stage::time_to_hang(Stall stall) const {
    const bool has_no_buffer = !buffers_.has_mapped_any() || (ending_ && !may_stay_);
    const milliseconds time = stall == Stall::timed_waits && has_no_buffer ? kSettleElsewhere
                              : stall == Stall::timed_waits ? kSettle + cpus() * kSettleOfACpu
                              : stall == Stall::spinning    ? kSpin
                                                            : kLimit;
    // A consumer may sleep with a limit of 100 ms, so a series of such waits gets more time.
    const double patience = stall == Stall::timed_waits
                                ? std::max(settings_.patience, kLeastPatienceOfTimedWaits)
                                : settings_.patience;
    return scaled(time, settings_.timeout_scale * patience);
}

std::optional<Clock::duration> Stage::processor_time() const {
    clockid_t clock{};
    timespec time{};
    const pid_t pid = tracer_->testee_pid();
    if (pid == 0 || clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0)
        return std::nullopt;
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

Clock::duration Stage::limit() const {
    if (settings_.debug) return kDebugLimit;
    return scaled(kLimit, settings_.timeout_scale);
}

bool Stage::owes_nothing() const {
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
        if (!progress_->ended(cpu) && progress_->first_undelivered(cpu)) return false;
    }
    return true;
}

Stage::Stall Stage::find_stall(bool must_be_sure) {
    // What it did before the producer's last operation says nothing of what it makes of that.
    const std::uint64_t operations = rings_->history().operations();
    if (std::exchange(operations_seen_, operations) != operations) clock_.note_work();
    if (Clock::now() - clock_.last_change() < kLookEvery) return Stall::none;
    // Each access that is only written down ends a wait of the runner: a look at all threads behind
    // each took ten times as long as the access.
    if (accesses_seen_ != accesses_recorded_ && Clock::now() - last_look_ < kLookEvery)
        return Stall::none;
    accesses_seen_ = accesses_recorded_;
    last_look_ = Clock::now();
    const Inspection inspection = tracer_->inspect();
    // What it wrote before it blocked is progress too.
    read_report();
    // Of one whose waits are short the runner sees little else than their stops.
    const auto rests = [this](const ThreadState& thread) {
        return is_out_of_the_way(thread) ||
               (thread.activity == Activity::kHeld && thread.tid == waits_.between_waits());
    };
    const bool nothing_runs =
        !inspection.threads.empty() &&  // none: it has ended, which wait() is about to say
        std::all_of(inspection.threads.begin(), inspection.threads.end(), rests);
    const TimePoint now = Clock::now();
    if (change_at_look_ != clock_.last_change()) {
        looks_ = quiet_looks_ = 0;
        processor_time_before_ = processor_time().value_or(Clock::duration{});
    }
    change_at_look_ = clock_.last_change();
    if (now - clock_.last_change() < kLookEvery) return Stall::none;
    const bool for_good = inspection.all_blocked_for_good && !inspection.other_processes;
    if (for_good && !(must_be_sure && inspection.others_may_end_it)) return Stall::for_good;
    // Timers, or processes that could wake it: then it is a matter of time, and of looks, of which
    // most found it blocked. (Time alone may have passed for the runner as well.)
    ++looks_;
    quiet_looks_ += nothing_runs ? 1 : 0;
    if (looks_ > kLooks && quiet_looks_ * 10 > looks_ * 8 && nothing_runs &&
        now - clock_.last_change() > time_to_hang(Stall::timed_waits))
        return for_good ? Stall::for_good : Stall::timed_waits;
    if (!settings_.debug && processor_time().value_or(Clock::duration{}) - processor_time_before_ >
                                time_to_hang(Stall::spinning))
        return Stall::spinning;
    return Stall::none;
}

bool Stage::is_at_rest() {
    const Stall stall = find_stall();
    return stall == Stall::timed_waits || stall == Stall::for_good || idles();
}

// Nothing has come of it for a long time, and at most looks each thread was blocked, or went from
// one short wait on a ring word to the next: of many such threads one is always awake. It may
// attach meanwhile, be woken by its own threads, write comments: that is its own affair.
bool Stage::idles() {
    const TimePoint now = Clock::now();
    if (std::exchange(idle_since_, clock_.last_work()) != clock_.last_work()) {
        idle_looks_ = calm_looks_ = 0;
        times_when_idle_.clear();
        idle_from_ = now;
        attaches_when_idle_ = attaches_.size();
    }
    if (now - looked_idle_at_ < kLookEvery) return false;
    looked_idle_at_ = now;
    // A runtime begins threads at any time.
    for (const pid_t tid : tracer_->testee_threads()) {
        if (!times_when_idle_.contains(tid))
            times_when_idle_.emplace(tid, IdleFrom{now, processor_time_of(tid), 0, 0});
    }
    const Clock::duration recent = scaled(kNap, settings_.timeout_scale);
    const Inspection inspection = tracer_->inspect();
    for (const ThreadState& thread : inspection.threads) {
        const auto from = times_when_idle_.find(thread.tid);
        if (from == times_when_idle_.end()) continue;
        ++from->second.looks;
        from->second.blocked_looks += is_out_of_the_way(thread) ? 1 : 0;
    }
    const auto is_calm = [&](const ThreadState& thread) {
        const std::optional<TimePoint> nap = waits_.last_nap(thread.tid);
        return is_out_of_the_way(thread) || (nap && now - *nap <= recent) ||
               hardly_runs(thread.tid);
    };
    const bool all_calm =
        !inspection.threads.empty() &&
        std::all_of(inspection.threads.begin(), inspection.threads.end(), is_calm);
    ++idle_looks_;
    calm_looks_ += all_calm ? 1 : 0;
    return all_calm && idle_looks_ > kIdleLooks && calm_looks_ * 10 > idle_looks_ * 8 &&
           now - clock_.last_work() > time_to_hang(Stall::timed_waits);
}

// Since nothing has come of the testee any more. Who waits elsewhere than on a ring word, and is
// interrupted there by timers, or works a little every few milliseconds (a collector of garbage),
// is never found blocked on a busy machine. Of the time in which it had no processor to wait for,
// it ran in a small part; one that goes round and round runs in all of it.
// (One that attaches all the time stands in the tracer's hands most of it, and on a busy machine it
// waits for that, too: of that more is asked, and that it is found blocked now and then.)
bool Stage::hardly_runs(pid_t tid) const {
    constexpr int kPart = 4;
    constexpr int kSmallPart = 20;
    constexpr unsigned kBlockedAtOneOf = 5;
    constexpr milliseconds kOften{20};
    const auto from = times_when_idle_.find(tid);
    if (from == times_when_idle_.end()) return false;
    const Clock::duration all = Clock::now() - from->second.at;
    const ProcessorTime now = processor_time_of(tid);
    const Clock::duration had = now.had - from->second.time.had;
    const Clock::duration waited = now.waited_for - from->second.time.waited_for;
    if (now.had == Clock::duration{}) return false;
    const auto attaches = static_cast<std::int64_t>(attaches_.size() - attaches_when_idle_);
    if (attaches * kOften > Clock::now() - idle_from_)
        return had * kSmallPart < all && (had + waited) * 2 < all &&
               from->second.blocked_looks * kBlockedAtOneOf >= from->second.looks;
    return had * kPart < all - waited;
}

// E19: retired buffers are nudged for as long as they are mapped. True: one was.
bool Stage::nudge_retired() {
    bool nudged = false;
    if (!nudging_) return false;
    let_fall_asleep_again();
    for (const Mapping& mapping : tracer_->mappings()) {
        const std::optional<BufferIndex> index = buffers_.index_of(mapping.buffer);
        if (!index || !rings_->history().buffer(*index).retired) continue;
        // In the middle of an emission (E16) its producer does nothing else.
        const std::uint32_t cpu = cpu_of(*index);
        if (rings_->is_reserved(cpu) || rings_->is_batch_pending(cpu)) continue;
        if (nudged_[*index]++ >= kNudgesOfOneBuffer) continue;
        rings_->nudge(*index);
        ++nudges_;
        nudged = true;
    }
    if (nudged) clock_.note_work();
    return nudged;
}

// True: it was woken.
bool Stage::wake_who_waits_elsewhere() {
    if (has_forked_) return false;
    const WaitLog::Wait* wait = waits_.lone_timed_wait();
    if (!wait || tracer_->activity(wait->wait.tid) != Activity::kBlocked) return false;
    for (const FutexWord& word : wait->wait.words) {
        const std::optional<BufferIndex> index = buffers_.index_of(word.place.buffer);
        if (!index || *index != rings_->history().present_buffer(cpu_of(*index)) ||
            progress_->first_undelivered(cpu_of(*index)) != nullptr)
            return false;
    }
    return rings_->spurious_wake(wait->cpu) > 0;
}

void Stage::wait_while(const std::function<bool()>& pending, const std::function<bool()>& owing,
                       const std::string& what) {
    Patience patience(settings_.debug ? limit() : time_to_hang(Stall::none));
    std::uint64_t hits = guard_hits_;
    std::uint64_t hits_in_vain = 0;
    const auto hits_of_a_standstill =
        static_cast<std::uint64_t>(kHitsOfAStandstill * settings_.patience);
    std::size_t records_seen = parser_.records().size();
    // Once round all CPUs: one that does not come by then chooses where it sleeps.
    std::uint32_t spurious_wakes_left = shortens_waits_ ? cpus() : 0;
    // A nudge is what the wait itself does.
    const auto operations = [this] { return rings_->history().operations() - nudges_; };
    std::uint64_t operations_seen = operations();
    milliseconds interval = kFirstNudge;
    TimePoint next_nudge = Clock::now() + interval;
    while (pending()) {
        if (ended_) stop_ended();
        pump(Clock::now() + kPoll);
        if (!pending()) break;
        if (owing()) stop_at_malformed();
        // It is stopped at every access: the time counts from the last one on. (Who guards pages
        // lets go of one that only looks; one that goes round and stores to need_wake each time,
        // and nothing comes of it, is let go of by nobody.)
        const std::uint64_t new_hits = guard_hits_ - std::exchange(hits, guard_hits_);
        const std::size_t records = parser_.records().size();
        const std::uint64_t operations_now = operations();
        if (std::exchange(records_seen, records) != records ||
            std::exchange(operations_seen, operations_now) != operations_now)
            hits_in_vain = 0;
        hits_in_vain += new_hits;
        if (new_hits > 0 && hits_in_vain < hits_of_a_standstill) patience.restart();
        if (owing() &&
            attaches_again_.count(rings_->history().buffer_count()) > kAttachesOfAStandstill)
            stop_hung(what, Stall::attaching);
        if (on_round_ && on_round_(false)) continue;
        if (spurious_wakes_left > 0 && wake_who_waits_elsewhere()) --spurious_wakes_left;
        const Stall stall = find_stall(true);
        if (stall != Stall::none && pending() && !ended_ && owing()) {
            if (on_round_ && on_round_(true)) continue;
            if (stall != Stall::spinning && nudge_retired()) continue;
            stop_hung(what, stall);
        }
        if (Clock::now() >= next_nudge && !ended_ && owing()) {
            nudge_retired();
            interval *= 2;
            next_nudge = Clock::now() + interval;
        }
        if (patience.is_over(tracer_->testee_threads())) stop_hung(what, Stall::none);
    }
    check_monitors();
}

void Stage::wait_until(const std::function<bool()>& condition, const std::string& what) {
    wait_while([&] { return !condition(); }, [] { return true; }, what);
}

bool Stage::wait_until_or_asleep(const std::function<bool()>& condition, std::uint32_t cpu) {
    bool came = false;
    wait_while(
        [&] {
            came = came || condition();
            return !came && !progress_->ended(cpu) &&
                   !(asleep(cpu) && !progress_->first_undelivered(cpu));
        },
        [&] { return progress_->first_undelivered(cpu) != nullptr; }, "an access or a sleep");
    return came;
}

bool Stage::all_mapped() const {
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
        if (progress_->ended(cpu)) continue;
        const std::vector<BufferIndex>& buffers = rings_->history().buffers_of(cpu);
        if (std::none_of(buffers.begin(), buffers.end(),
                         [this](BufferIndex index) { return buffers_.has_mapped(index); }))
            return false;
    }
    return true;
}

void Stage::wait_mapped_unless(const std::function<bool()>& condition) {
    wait_while([&] { return !all_mapped() && !condition(); }, [] { return true; },
               "an mmap or an R record of every buffer");
    tracer_->go_apart();
}

void Stage::wait_mapped() {
    wait_mapped_unless([] { return false; });
}

bool Stage::wait_mapped_or_exit() {
    const auto gave_up = [this] {
        return ended_ && ended_->kind == EndKind::kExited && ended_->exit_status != 0;
    };
    wait_mapped_unless(gave_up);
    return !gave_up();
}

void Stage::wait_delivered(std::uint32_t cpu) {
    const auto pending = [this, cpu] {
        return !progress_->ended(cpu) && progress_->first_undelivered(cpu) != nullptr;
    };
    wait_while(pending, pending, fmt::format("a drain of CPU {}", cpu));
}

void Stage::wait_delivered() {
    const auto pending = [this] { return !all_mapped() || !owes_nothing(); };
    wait_while(pending, pending, "a drain of every CPU");
}

void Stage::wait_asleep(std::uint32_t cpu) {
    const auto pending = [this, cpu] {
        return !progress_->ended(cpu) &&
               (progress_->first_undelivered(cpu) != nullptr || !asleep(cpu));
    };
    wait_while(pending, pending,
               fmt::format("a drain of CPU {}, and a futex wait on futex_counter", cpu));
    if (progress_->ended(cpu)) return;
    let_fall_asleep(cpu);
    take_checkpoint(cpu);
    for (const auto& monitor : monitors_) monitor->asleep(cpu);
}

void Stage::wait_asleep_or_stuck(std::uint32_t cpu) {
    const TimePoint end = Clock::now() + kStuck;
    while (!ended_ && !asleep(cpu) && Clock::now() < end) pump(std::min(end, Clock::now() + kPoll));
    if (ended_) stop_ended();
    let_fall_asleep(cpu);
}

void Stage::wait_tolerated_at_rest() {
    const auto all_refused = [this] {
        for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) {
            if (rings_->history().tolerated(cpu) && !progress_->ended(cpu)) return false;
        }
        return true;
    };
    // A look is of use only after a while in which nothing moved: find_stall sees to that.
    wait_while([&] { return !ended_ && !all_refused() && !is_at_rest(); }, [] { return false; },
               "R records of the forged buffers, or a sleep");
}

void Stage::wait_asleep() {
    wait_mapped();
    for (std::uint32_t cpu = 0; cpu < cpus(); ++cpu) wait_asleep(cpu);
}

void Stage::let_run(std::uint64_t milliseconds_to_run) {
    const TimePoint end = Clock::now() + milliseconds(milliseconds_to_run);
    while (!ended_ && Clock::now() < end) pump(std::min(end, Clock::now() + kPoll));
}

}  // namespace kmes::conformance
