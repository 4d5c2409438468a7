// SPDX-License-Identifier: MIT
//
// See play.h.
#include "conformance/play/play.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <utility>

#include "conformance/stage/spin_watch.h"

namespace kmes::conformance {

namespace {

// After a wake with one event, a consumer makes about ten accesses to the metadata page. A consumer
// with far more accesses spins, for at most this many sleeps.
constexpr std::uint64_t kSleepsAtMost = 50;
constexpr std::uint64_t kAccessesAtMost = kWalkAccessesAtMost + 1;
constexpr std::uint64_t kAccessesOfASpin = 50000;
// After this many accesses the suite does not stop at reads until the next write.
constexpr std::uint64_t kLoadsOfASpin = 20000;

// The distance from write_pos to `offset` bytes before the end of the data region: at least one
// event.
std::uint64_t bytes_up_to(Stage& stage, std::uint32_t cpu, std::uint64_t offset) {
    const std::uint64_t size = capacity(stage, cpu);
    const std::uint64_t left = (size - offset - write_pos(stage, cpu)) & (size - 1);
    return left < kLeastEventBytes ? left + size : left;
}

}  // namespace

void emit_some(Stage& stage, std::uint32_t cpu, std::uint64_t count, std::uint64_t event_bytes) {
    stage.rings().emit_many(cpu, count, event_bytes);
}

void emit_everywhere(Stage& stage, std::uint64_t count, std::uint64_t event_bytes) {
    for (std::uint64_t i = 0; i < count; ++i) {
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu)
            emit_some(stage, cpu, 1, event_bytes);
    }
}

void set_up_cpus(Stage& stage, std::uint32_t cpus, std::uint64_t capacity_bytes) {
    RingsSetup setup = stage.default_setup();
    setup.cpus = cpus;
    setup.capacity_bytes = capacity_bytes;
    stage.set_up(setup);
}

void emit_small(Stage& stage, std::uint32_t cpu, std::uint64_t bytes) {
    constexpr std::uint64_t kSmall = 8 * kPageBytes;
    for (; bytes > 2 * kSmall; bytes -= kSmall) emit_some(stage, cpu, 1, kSmall);
    stage.rings().emit_bytes(cpu, bytes);
}

bool place_next_event(Stage& stage, std::uint64_t offset, Filler filler) {
    stage.wait_asleep();
    if (stage.testee().has_ended(0)) return false;
    const std::uint64_t left = bytes_up_to(stage, 0, offset);
    if (filler == Filler::small)
        emit_small(stage, 0, left);
    else
        stage.rings().emit_bytes(0, left);
    stage.wait_asleep(0);
    return true;
}

void set_up_cpus(Stage& stage, std::uint32_t cpus) {
    set_up_cpus(stage, cpus, stage.default_setup().capacity_bytes);
}

void set_up_one_cpu(Stage& stage) {
    set_up_cpus(stage, 1);
}

void set_up_one_cpu(Stage& stage, std::uint64_t capacity_bytes) {
    set_up_cpus(stage, 1, capacity_bytes);
}

void emit_headers(Stage& stage, std::uint32_t cpu, std::uint64_t count, std::uint64_t event_bytes) {
    const std::string type = "header";
    const std::uint64_t further = event_bytes - kHeaderBytesBeforeType - type.size();
    for (std::uint64_t i = 0; i < count; ++i)
        stage.rings().emit(cpu, stage.rings().events().make(event_bytes, type, further));
}

void emit_end(Stage& stage, std::uint32_t cpu) {
    stage.rings().emit(cpu, stage.rings().events().make_end());
}

void end_cpu(Stage& stage, std::uint32_t cpu) {
    emit_end(stage, cpu);
    stage.waits().delivered(cpu);
}

bool is_delivered(const Stage& stage, std::uint32_t cpu) {
    const auto& events = stage.rings().history().events_of(cpu);
    if (events.empty()) return true;
    const std::vector<Record>& records = stage.testee().records().records();
    const auto last = std::find_if(records.rbegin(), records.rend(), [cpu](const Record& record) {
        return record.kind == RecordKind::event && record.cpu == cpu;
    });
    return last != records.rend() && last->sequence >= events.back().sequence;
}

std::size_t reported_changes(const Stage& stage, std::uint32_t cpu) {
    const std::vector<Record>& records = stage.testee().records().records();
    return static_cast<std::size_t>(
        std::count_if(records.begin(), records.end(), [cpu](const Record& record) {
            return record.kind == RecordKind::generation && record.cpu == cpu;
        }));
}

bool sleeps_on_undelivered(Stage& stage, const FutexWait& wait) {
    const BufferIndex buffer = stage.rings().history().current_buffer(0);
    const bool is_current =
        std::any_of(wait.words.begin(), wait.words.end(), [&](const FutexWord& word) {
            return stage.buffers().buffer_at(word.place) == buffer &&
                   word.value_expected == stage.rings().counters().of(buffer);
        });
    if (!is_current || stage.rings().backend().need_wake(buffer) == 0 ||
        stage.testee().has_ended(0))
        return false;
    stage.testee().read_report();
    return !is_delivered(stage, 0);
}

bool is_long(const FutexWait& wait) {
    const std::optional<Clock::duration> limit = limit_of(wait);
    return !limit || *limit > std::chrono::milliseconds(100);
}

void lap(Stage& stage, std::uint32_t cpu, std::uint64_t event_bytes) {
    const std::uint64_t bytes = std::min(event_bytes, capacity(stage, cpu) / 2);
    emit_some(stage, cpu, capacity(stage, cpu) / bytes + 2, bytes);
}

std::uint64_t write_pos(Stage& stage, std::uint32_t cpu) {
    const History& history = stage.rings().history();
    return history.buffer(history.current_buffer(cpu)).write_pos;
}

std::uint64_t capacity(Stage& stage, std::uint32_t cpu) {
    const History& history = stage.rings().history();
    return history.buffer(history.current_buffer(cpu)).capacity;
}

void fill_up_to(Stage& stage, std::uint32_t cpu, std::uint64_t offset) {
    stage.rings().emit_bytes(cpu, bytes_up_to(stage, cpu, offset));
}

namespace {

// The beginning of an iteration, and the functions that see its accesses before any is counted.
struct Beginning {
    std::function<void()> wake;
    // Called before an uncounted access: returns true if counting begins with it. Empty: it does.
    std::function<bool(const GuardHit&)> is_over;
    // Called after an uncounted access. Returns true if the producer has acted.
    std::function<bool(const GuardHit&)> after;
};

Beginning begins_with(const std::function<void()>& wake) {
    return Beginning{wake, nullptr, nullptr};
}

bool act_at(Stage& stage, std::uint32_t cpu, std::uint64_t k, Counted counted,
            const Beginning& beginning, const std::function<void()>& act) {
    stage.wait_asleep();
    if (stage.testee().has_ended(cpu))
        return false;  // refused: the judge decides whether that was correct
    stage.waits().until([&stage, cpu] { return has_mapped_current_buffer(stage, cpu); },
                        "an mmap of the current buffer");
    std::uint64_t accesses = 0;
    std::uint64_t left = counted == Counted::all ? kAccessesAtMost : kAccessesOfASpin;
    std::set<std::pair<std::uint64_t, std::uint64_t>> seen;
    const std::uint64_t sleeps = stage.wait_log().sleeps(cpu);
    SpinWatch spin_watch(stage, kLoadsOfASpin);
    bool has_begun = !beginning.is_over;
    const auto at = [&](const GuardHit& hit) {
        spin_watch.note_access(hit);
        // A consumer that sleeps again and again without delivering runs into its time limit.
        if (left == 0 || stage.wait_log().sleeps(cpu) > sleeps + kSleepsAtMost)
            return AtGuard::release;
        has_begun = has_begun || beginning.is_over(hit);
        if (!has_begun) return AtGuard::step;
        --left;
        const bool is_first =
            seen.emplace(hit.code.instruction_pointer, hit.place.offset_bytes).second;
        if (counted == Counted::first_of_each && !is_first) return AtGuard::step;
        if (++accesses == k) {
            spin_watch.stop_at_all_loads();
            act();
            left = kAccessesAtMost;
        }
        return AtGuard::step;
    };
    const auto after = [&](const GuardHit& hit, const GuardStep&) {
        if (!has_begun && beginning.after(hit)) spin_watch.stop_at_all_loads();
    };
    const auto guard = [&] { stage.guards().guard(cpu, 0, 1, at, after); };
    guard();
    // A beginning may lead to the next buffer.
    if (!has_begun) {
        stage.hooks().set_on_mapped([&](const Mapped& mapped) {
            if (!has_begun && is_present(stage, mapped, cpu)) guard();
        });
    }
    beginning.wake();
    stage.wait_asleep();
    if (beginning.is_over) stage.hooks().set_on_mapped(nullptr);
    stage.guards().release();
    return accesses >= k;
}

void act_at_each(Stage& stage, std::uint32_t cpu, const std::function<void()>& prepare,
                 const std::function<Beginning()>& begin, const std::function<void()>& act,
                 const WalkChoice& choice) {
    WalkLimit limit(stage);
    const auto play = [&](const AccessNumber& access) {
        if (choice.on_begin) choice.on_begin(access);
        prepare();
        return act_at(stage, cpu, access.number, access.counted, begin(), act);
    };
    if (choice.only) {
        for (const AccessNumber& access : *choice.only) play(access);
        return;
    }
    for (const Counted counted : {Counted::all, Counted::first_of_each}) {
        std::uint64_t k = 1;
        while (k < kAccessesAtMost) {
            if (!play({counted, k})) break;
            if (limit.is_over()) return;
            ++k;
        }
        // Only a consumer that spins makes so many. The second walk reaches what comes after the
        // spin.
        if (k < kAccessesAtMost) return;
    }
    stage.findings().played_in_part(fmt::format(
        "the walk over the consumer's accesses ended at number {}", kWalkAccessesAtMost));
}

}  // namespace

WalkLimit::WalkLimit(Stage& stage)
    : stage_(stage),
      shortened_waits_(stage.waits()),
      limit_(std::chrono::milliseconds(
          static_cast<std::int64_t>(15'000 * std::max(1.0, stage.settings().timeout_scale)))),
      begin_(std::chrono::steady_clock::now()) {}

// A step of a tenth of a second means that the consumer waits by itself; such walks get a third of
// the time.
bool WalkLimit::is_over() {
    constexpr std::chrono::milliseconds kLongStep{100};
    if (is_over_) return true;
    const auto passed = std::chrono::steady_clock::now() - begin_;
    ++steps_;
    is_over_ = passed > limit_ || (passed > limit_ / 3 && passed / steps_ > kLongStep);
    if (is_over_)
        stage_.findings().played_in_part(fmt::format(
            "the walk over the consumer's steps was limited to {:.0f} s and ended at step {}",
            std::chrono::duration<double>(passed).count(), steps_));
    return is_over_;
}

bool act_at_access(Stage& stage, std::uint32_t cpu, std::uint64_t k,
                   const std::function<void()>& act) {
    return act_at_access_of(stage, cpu, k, [&] { emit_some(stage, cpu, 1, 100); }, act);
}

bool act_at_access_of(Stage& stage, std::uint32_t cpu, std::uint64_t k,
                      const std::function<void()>& wake, const std::function<void()>& act) {
    return act_at(stage, cpu, k, Counted::all, begins_with(wake), act);
}

void act_at_every_access(Stage& stage, std::uint32_t cpu, const std::function<void()>& act,
                         const WalkChoice& choice) {
    const auto wake = [&stage, cpu] { emit_some(stage, cpu, 1, 100); };
    act_at_each(stage, cpu, [] {}, [&] { return begins_with(wake); }, act, choice);
}

void act_at_every_access_after_nothing(Stage& stage, std::uint32_t cpu,
                                       const std::function<void()>& act, std::uint64_t wakes,
                                       const WalkChoice& choice) {
    const auto wake = [&] { wake_spuriously(stage, cpu); };
    const auto wake_before = [&] {
        for (std::uint64_t i = 1; i < wakes && !stage.testee().has_ended(cpu); ++i) {
            stage.wait_asleep();
            wake();
        }
    };
    act_at_each(stage, cpu, wake_before, [&] { return begins_with(wake); }, act, choice);
}

void act_at_every_access_after(Stage& stage, Disturbance disturbance,
                               const std::function<void()>& act, const WalkChoice& choice) {
    const auto begin = [&stage, disturbance] {
        const auto iteration = std::make_shared<UnusualIteration>(stage, disturbance);
        return Beginning{[iteration] { iteration->begin(); },
                         [iteration](const GuardHit& hit) { return iteration->check_before(hit); },
                         [iteration](const GuardHit& hit) { return iteration->make_after(hit); }};
    };
    act_at_each(stage, 0, [] {}, begin, act, choice);
}

void overwrite_all(Stage& stage,
                   const std::function<void(std::string& payload, std::uint64_t position)>& fill) {
    emit_some(stage, 0, 1, 100);
    for (int i = 0; i < 3; ++i) {
        EventSpec over = stage.rings().events().make(capacity(stage, 0) / 2);
        fill(over.payload, write_pos(stage, 0));
        stage.rings().emit(0, std::move(over));
    }
}

void stop_unseen(Stage& stage, std::uint64_t calls_before) {
    if (stage.testee().tracer().effects().redirected_calls > calls_before)
        stop_unsupported(
            "the consumer passed its buffers to system calls, inside which the suite cannot stop "
            "it");
    if (!stage.testee().has_ended(0))
        stop_inconclusive("no access of the consumer to the pages of the event was seen");
}

void overwrite_under_read(Stage& stage, std::uint64_t first_page, std::uint64_t pages,
                          const std::function<void()>& emit, const std::function<void()>& overwrite,
                          IfUnseen if_unseen) {
    bool is_done = false;
    const std::uint64_t calls = stage.testee().tracer().effects().redirected_calls;
    const auto on_read = [&](const GuardHit&) {
        overwrite();
        is_done = true;
        return AtGuard::release;
    };
    // Page 0 of the mapping is the metadata. A consumer may read in either copy of the data.
    const std::uint64_t region_pages = capacity(stage, 0) / kPageBytes;
    stage.guards().guard(0, 1 + first_page, pages, on_read);
    if (first_page + pages <= region_pages)
        stage.guards().guard(0, 1 + region_pages + first_page, pages, on_read);
    emit();
    stage.waits().until_or_asleep([&is_done] { return is_done; }, 0);
    if (!is_done && if_unseen == IfUnseen::stop) stop_unseen(stage, calls);
    if (stage.rings().emissions().is_reserved(0)) {
        stage.waits().asleep_or_stuck(0);
        stage.rings().emissions().commit(0);
    } else if (stage.rings().emissions().is_batch_pending(0)) {
        stage.waits().asleep_or_stuck(0);
        stage.rings().emissions().end_batch(0);
    }
    stage.wait_asleep(0);
    stage.guards().release();
}

void move_positions(Stage& stage, std::uint64_t position, std::uint64_t to) {
    stage.resize(stage.capacity_bytes(), PositionRule::shift, to - position);
    stage.wait_asleep();
}

void wake_spuriously(Stage& stage, std::uint32_t cpu) {
    constexpr int kTries = 20;
    // Each try takes a millisecond: on a busy machine the way from the call to its sleep may be
    // long.
    constexpr int kTriesWhereItSleeps = 3000;
    constexpr std::chrono::seconds kLong{4};  // longer than the loop
    const std::uint64_t before = stage.wait_log().sleeps(cpu);
    // A reported wait may not sleep yet. A consumer that sleeps on another word, or is between two
    // waits with a timeout, does not notice the wake and need not.
    int tries = 0;
    while (stage.rings().spurious_wake(cpu) == 0) {
        if (++tries >= (stage.wait_log().sleeps_for(cpu, kLong) ? kTriesWhereItSleeps : kTries))
            return;
        stage.waits().let_run(1);
    }
    stage.waits().until(
        [&] { return stage.wait_log().sleeps(cpu) > before || stage.testee().has_ended(cpu); },
        "another wait after a wake without an event");
}

void give_time(Stage& stage, const std::function<bool()>& condition) {
    constexpr int kChecks = 40;
    constexpr std::uint64_t kCheckEveryMs = 50;
    for (int check = 0; check < kChecks && !condition(); ++check)
        stage.waits().let_run(kCheckEveryMs);
}

}  // namespace kmes::conformance
