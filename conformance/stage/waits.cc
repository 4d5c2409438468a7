// SPDX-License-Identifier: MIT
//
// See waits.h.
#include "conformance/stage/waits.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "conformance/stage/end_finding.h"
#include "conformance/stage/hang_finding.h"
#include "conformance/stage/stage_parts.h"
#include "conformance/stage/stop.h"
#include "conformance/tracer/patience.h"

namespace kmes::conformance {

namespace {

using std::chrono::milliseconds;

// The interval of the checks in a wait.
constexpr milliseconds kWaitPoll{3};
// The time after which asleep_or_stuck() returns in any case. No verdict depends on it.
constexpr milliseconds kStuck{60};
// The first interval between two nudges of retired buffers (E19), while the consumer owes
// something. The interval doubles after each nudge.
constexpr milliseconds kFirstNudge{50};
// How long a thread may take from the entry into a wait until it sleeps.
constexpr milliseconds kFallAsleep{1000};
// The most stopped accesses in one wait without a record and without an operation of the producer.
constexpr std::uint64_t kHitsWithoutProgress = 400'000;
// The limit of calls that change nothing: a fixed number, and a number for each CPU. A time limit
// would take minutes, because the suite itself takes most of that time: it serves, maps and guards.
constexpr std::uint64_t kCallsWithoutProgress = Repeats::kTooMany;
constexpr std::uint64_t kCallsOfACpu = 20;

std::uint64_t most_calls_without_progress(std::uint64_t cpus) {
    return kCallsWithoutProgress + kCallsOfACpu * cpus;
}

}  // namespace

// -- Sleep -----------------------------------------------------------------------------------

// Waits until the sleeper of this CPU is asleep in the kernel, but at most kFallAsleep: no verdict
// depends on it. The tracer reports a wait at its entry, and the thread sleeps a little later.
// After each stop of all threads the wait begins again. An operation of the producer before the
// sleep wakes no thread: the wait finds another value.
void Waits::let_fall_asleep(std::uint32_t cpu) {
    constexpr std::chrono::microseconds kMoment{50};
    const TimePoint end = Clock::now() + scaled(kFallAsleep, parts_.settings.timeout_scale);
    while (!parts_.testee.end() && Clock::now() < end) {
        const WaitLog::Wait* wait =
            parts_.wait_log.wait_on(cpu, parts_.rings->history().current_buffer(cpu));
        if (wait == nullptr) return;
        const Activity activity = parts_.testee.tracer().activity(wait->wait.tid);
        if (activity == Activity::kBlocked || activity == Activity::kEnded) return;
        parts_.events.pump(Clock::now() + kMoment);
    }
}

// Does nothing while the stage acts on an event of the tracer, because threads are stopped for the
// event. Repeats the wait, because the events that it serves may stop all threads again.
void Waits::let_fall_asleep_again() {
    constexpr int kMostTimes = 16;
    if (!parts_.testee.has_tracer() || parts_.events.is_in_pump() || parts_.holding.is_frozen())
        return;
    for (int i = 0; i < kMostTimes; ++i) {
        const std::uint64_t freezes = parts_.testee.tracer().effects().freezes;
        if (std::exchange(freezes_slept_through_, freezes) == freezes) return;
        for (std::uint32_t cpu = 0; cpu < parts_.cpus(); ++cpu) let_fall_asleep(cpu);
    }
}

// For a sleeper without a limit: the report must contain every event that survives now
// (History::checkpoint_idle lists the conditions).
void Waits::take_checkpoint(std::uint32_t cpu) {
    if (!parts_.wait_log.proves_idle(cpu)) return;
    const BufferIndex buffer = parts_.rings->history().current_buffer(cpu);
    parts_.testee.read_report();
    parts_.rings->history().checkpoint_idle(cpu, buffer, parts_.testee.records().bytes_fed());
}

// -- Wakes during a wait ---------------------------------------------------------------------

void Waits::set_nudging(bool on) {
    parts_.nudges.set_on(on);
}

// Nudges retired buffers while they are mapped (E19). Returns whether it nudged one.
bool Waits::nudge_retired() {
    if (!parts_.nudges.is_on()) return false;
    let_fall_asleep_again();
    const bool nudged = parts_.nudges.nudge_retired(*parts_.rings, parts_.buffers,
                                                    parts_.testee.tracer().mappings());
    if (nudged) parts_.clock.note_work();
    return nudged;
}

// Returns whether it woke a thread.
bool Waits::wake_lone_timed_wait() {
    if (parts_.testee.has_forked()) return false;
    const WaitLog::Wait* wait = parts_.wait_log.lone_timed_wait();
    if (!wait || parts_.testee.tracer().activity(wait->wait.tid) != Activity::kBlocked)
        return false;
    for (const FutexWord& word : wait->wait.words) {
        const std::optional<BufferIndex> index = parts_.buffers.index_of(word.place.buffer);
        if (!index) return false;
        const std::uint32_t cpu = parts_.cpu_of(*index);
        if (*index != parts_.rings->history().current_buffer(cpu) ||
            parts_.testee.progress().first_undelivered(cpu) != nullptr)
            return false;
    }
    return parts_.rings->spurious_wake(wait->cpu) > 0;
}

// -- Waits -----------------------------------------------------------------------------------

Clock::duration Waits::limit() const {
    return parts_.liveness.limit();
}

void Waits::while_pending(const std::function<bool()>& pending, const std::function<bool()>& owing,
                          const std::string& what) {
    const Testee& testee = parts_.testee;
    Liveness& liveness = parts_.liveness;
    Patience patience(parts_.settings.debug ? limit() : liveness.time_to_hang(Stall::none));
    std::uint64_t hits = parts_.guards.hits();
    std::uint64_t hits_without_progress = 0;
    const auto most_hits_without_progress =
        static_cast<std::uint64_t>(kHitsWithoutProgress * parts_.settings.patience);
    std::size_t records_seen = testee.records().records().size();
    // One wake for each CPU. A thread that has not reached the awaited CPU after these wakes
    // decides itself which CPU it reads next.
    std::uint32_t spurious_wakes_left = shortens_ ? parts_.cpus() : 0;
    // The nudges of this wait are no operations from outside.
    const auto operations = [this] {
        return parts_.rings->history().operations() - parts_.nudges.count();
    };
    std::uint64_t operations_seen = operations();
    milliseconds interval = kFirstNudge;
    TimePoint next_nudge = Clock::now() + interval;
    while (pending()) {
        if (testee.end()) stop_ended(parts_);
        parts_.events.pump(Clock::now() + kWaitPoll);
        if (!pending()) break;
        if (owing()) stop_at_malformed(testee.records());
        // The testee stops at every access, so the time counts from the last access. The limit of
        // hits ends a loop that also stores to need_wake. (SpinWatch handles a loop that only
        // loads.)
        const std::uint64_t new_hits =
            parts_.guards.hits() - std::exchange(hits, parts_.guards.hits());
        const std::size_t records = testee.records().records().size();
        const std::uint64_t operations_now = operations();
        if (std::exchange(records_seen, records) != records ||
            std::exchange(operations_seen, operations_now) != operations_now)
            hits_without_progress = 0;
        hits_without_progress += new_hits;
        if (new_hits > 0 && hits_without_progress < most_hits_without_progress) patience.restart();
        if (owing()) stop_at_endless_calls(what);
        if (parts_.hooks.iterate(false)) continue;
        if (spurious_wakes_left > 0 && wake_lone_timed_wait()) --spurious_wakes_left;
        const Stall stall = liveness.find_stall(true);
        if (stall != Stall::none && pending() && !testee.end() && owing()) {
            if (parts_.hooks.iterate(true)) continue;
            if (stall != Stall::spinning && nudge_retired()) continue;
            stop_hung(parts_, what, stall);
        }
        if (Clock::now() >= next_nudge && !testee.end() && owing()) {
            nudge_retired();
            interval *= 2;
            next_nudge = Clock::now() + interval;
        }
        if (patience.is_over(testee.tracer().testee_threads()))
            stop_hung(parts_, what, Stall::none);
    }
    stop_at_fault(parts_.monitors);
}

void Waits::stop_at_endless_calls(const std::string& what) {
    const std::uint64_t most = most_calls_without_progress(parts_.cpus());
    // While no buffer is replaced, a correct thread attaches twice for each buffer, and twice after
    // a nudge.
    if (parts_.liveness.attaches_again() > most) stop_hung(parts_, what, Stall::attaching);
    // refused_waits() counts from the producer's last operation. After EAGAIN, a correct thread
    // loads the counter again and expects the current value.
    if (parts_.wait_log.refused_waits() > most) stop_hung(parts_, what, Stall::refused);
}

void Waits::until(const std::function<bool()>& condition, const std::string& what) {
    while_pending([&] { return !condition(); }, [] { return true; }, what);
}

bool Waits::until_or_asleep(const std::function<bool()>& condition, std::uint32_t cpu) {
    const Progress& progress = parts_.testee.progress();
    bool came = false;
    while_pending(
        [&] {
            came = came || condition();
            return !came && !progress.ended(cpu) &&
                   !(parts_.wait_log.asleep(cpu) && !progress.first_undelivered(cpu));
        },
        [&] { return progress.first_undelivered(cpu) != nullptr; }, "an access or a sleep");
    return came;
}

void Waits::exited(const std::string& what) {
    const auto pending = [this] { return !parts_.testee.end(); };
    while_pending(pending, pending, what);
}

bool Waits::all_mapped() const {
    for (std::uint32_t cpu = 0; cpu < parts_.cpus(); ++cpu) {
        if (parts_.testee.has_ended(cpu)) continue;
        const std::vector<BufferIndex>& buffers = parts_.rings->history().buffers_of(cpu);
        if (std::none_of(buffers.begin(), buffers.end(),
                         [this](BufferIndex index) { return parts_.buffers.has_mapped(index); }))
            return false;
    }
    return true;
}

void Waits::mapped_unless(const std::function<bool()>& condition) {
    while_pending([&] { return !all_mapped() && !condition(); }, [] { return true; },
                  "an mmap or an R record of every buffer");
    parts_.testee.tracer().unshare_processor();
}

void Waits::mapped() {
    mapped_unless([] { return false; });
}

bool Waits::mapped_or_exit() {
    const auto gave_up = [this] {
        const std::optional<Ended>& end = parts_.testee.end();
        return end && end->kind == EndKind::kExited && end->exit_status != 0;
    };
    mapped_unless(gave_up);
    return !gave_up();
}

void Waits::delivered(std::uint32_t cpu) {
    const auto pending = [this, cpu] {
        return !parts_.testee.has_ended(cpu) &&
               parts_.testee.progress().first_undelivered(cpu) != nullptr;
    };
    while_pending(pending, pending, fmt::format("a drain of CPU {}", cpu));
}

void Waits::delivered() {
    const auto pending = [this] { return !all_mapped() || !parts_.testee.owes_nothing(); };
    while_pending(pending, pending, "a drain of every CPU");
}

void Waits::asleep(std::uint32_t cpu) {
    const auto pending = [this, cpu] {
        return !parts_.testee.has_ended(cpu) &&
               (parts_.testee.progress().first_undelivered(cpu) != nullptr ||
                !parts_.wait_log.asleep(cpu));
    };
    while_pending(pending, pending,
                  fmt::format("a drain of CPU {}, and a futex wait on futex_counter", cpu));
    if (parts_.testee.has_ended(cpu)) return;
    let_fall_asleep(cpu);
    take_checkpoint(cpu);
    for (const auto& monitor : parts_.monitors) monitor->asleep(cpu);
}

void Waits::asleep() {
    mapped();
    for (std::uint32_t cpu = 0; cpu < parts_.cpus(); ++cpu) asleep(cpu);
}

void Waits::asleep_or_stuck(std::uint32_t cpu) {
    const Testee& testee = parts_.testee;
    const TimePoint end = Clock::now() + kStuck;
    while (!testee.end() && !parts_.wait_log.asleep(cpu) && Clock::now() < end)
        parts_.events.pump(std::min(end, Clock::now() + kWaitPoll));
    if (testee.end()) stop_ended(parts_);
    let_fall_asleep(cpu);
}

void Waits::tolerated_at_rest() {
    const Testee& testee = parts_.testee;
    const auto all_refused = [this] {
        for (std::uint32_t cpu = 0; cpu < parts_.cpus(); ++cpu) {
            if (parts_.rings->history().tolerated(cpu) && !parts_.testee.has_ended(cpu))
                return false;
        }
        return true;
    };
    // find_stall() checks the threads only after a time without a change.
    while_pending(
        [&] { return !testee.end() && !all_refused() && !parts_.liveness.check_for_rest(); },
        [] { return false; }, "R records of the forged buffers, or a sleep");
}

void Waits::let_run(std::uint64_t milliseconds_to_run) {
    const TimePoint end = Clock::now() + milliseconds(milliseconds_to_run);
    while (!parts_.testee.end() && Clock::now() < end)
        parts_.events.pump(std::min(end, Clock::now() + kWaitPoll));
}

}  // namespace kmes::conformance
