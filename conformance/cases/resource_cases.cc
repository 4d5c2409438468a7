// SPDX-License-Identifier: MIT
//
// Much of everything: resizes, bytes, laps, drops, numbers at the ends of their range; and attaches
// that a resize or the boot hand-over meets half way.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "conformance/cases/many_files.h"
#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

// Texts of several cases.
constexpr std::string_view kComparesCounter =
    "The consumer compares futex_counter for equality only, so it never sleeps on an unread event.";

// -- Sizes -----------------------------------------------------------------------------------

// The files are sparse: only what is written takes memory. A consumer that keeps a copy of its own
// of a whole ring needs the room for it.
CaseOutcome largest_capacity(Stage& stage) {
    constexpr std::uint64_t kCapacity = 256ull << 20;
    constexpr std::uint64_t kNeeded = 2ull << 30;
    const std::uint64_t available = read_kib("/proc/meminfo", "MemAvailable:");
    if (available < kNeeded)
        stop_unsupported(fmt::format("{} MiB of memory are free; buffers of 256 MiB need {}",
                                     available >> 20, kNeeded >> 20));
    RingsSetup setup = stage.default_setup();
    setup.cpus = 1;
    setup.capacity_bytes = kCapacity;
    setup.start_positions = {3 * kCapacity - 100'000};
    stage.set_up(setup);
    emit_some(stage, 0, 9, 30'000);
    stage.start();
    stage.wait_delivered();
    emit_some(stage, 0, 1, 1 << 20);
    emit_some(stage, 0, 9, 100);
    stage.wait_asleep();
    stage.resize(stage.default_setup().capacity_bytes);
    emit_some(stage, 0, 3, 100);
    stage.wait_asleep();
    return stage.finish();
}

// Ten laps while the consumer is stopped, anywhere in its drain.
CaseOutcome paused_for_ten_laps(Stage& stage) {
    constexpr int kLaps = 10;
    stage.start();
    stage.wait_asleep();
    for (const std::uint64_t event_bytes : {700, 3000, 20000}) {
        emit_everywhere(stage, 20, event_bytes / 10);
        stage.freeze();
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
            for (int i = 0; i < kLaps; ++i) lap(stage, cpu, event_bytes + cpu);
        }
        stage.thaw();
        stage.wait_asleep();
    }
    return stage.finish();
}

// -- Attaches that something meets half way --------------------------------------------------

// One CPU moves to a new buffer; the buffer is swapped once more at the `k`-th step on the way: a
// kmes_attach that was served, an mmap, or an access to the page that was mapped. False: there was
// no such step.
bool swap_at_step_of_attach(Stage& stage, std::uint64_t k) {
    constexpr std::uint64_t kAccessesAtMost = 40;
    std::uint64_t steps = 0;
    const auto step = [&] {
        if (++steps != k) return false;
        stage.resize(stage.capacity_bytes());
        emit_some(stage, 0, 1, 70);
        return true;
    };
    stage.set_on_attached([&](const Attached& attached) {
        if (attached.error == 0) step();
    });
    stage.set_on_mapped([&](const Mapped& mapped) {
        if (step() || steps > k || !stage.is_present(mapped, 0)) return;
        std::uint64_t left = kAccessesAtMost;
        stage.guard(0, 0, 1, [&step, left](const GuardHit&) mutable {
            return step() || --left == 0 ? Stage::AtGuard::release : Stage::AtGuard::step;
        });
    });
    stage.resize(stage.capacity_bytes());
    emit_some(stage, 0, 1, 70);
    stage.wait_asleep();
    stage.release_guards();
    stage.set_on_attached(nullptr);
    stage.set_on_mapped(nullptr);
    return steps >= k;
}

CaseOutcome resize_at_every_step_of_an_attach(Stage& stage) {
    constexpr std::uint64_t kStepsAtMost = 60;
    set_up_one_cpu(stage);
    emit_everywhere(stage, 3, 100);
    stage.start();
    stage.wait_asleep();
    for (std::uint64_t k = 1; k <= kStepsAtMost && !stage.has_ended(0); ++k) {
        if (!swap_at_step_of_attach(stage, k)) break;
    }
    return stage.finish();
}

// Another thread than `tid` has mapped a buffer since there were `maps` of them, and one sleeps.
bool another_is_there(Stage& stage, pid_t tid, std::size_t maps) {
    const auto first = stage.maps().begin() + static_cast<std::ptrdiff_t>(maps);
    const bool has_mapped = std::any_of(first, stage.maps().end(),
                                        [tid](const Mapped& mapped) { return mapped.tid != tid; });
    return has_mapped && (stage.asleep(0) || stage.asleep(1));
}

// The buffers are replaced by some of `next_bytes` while `tid` is stopped, until another thread, if
// there is one, has moved on to those.
void hold_through_a_resize(Stage& stage, pid_t tid, std::uint64_t next_bytes) {
    const std::size_t maps = stage.maps().size();
    stage.resize(next_bytes);
    emit_everywhere(stage, 1, 70);
    stage.hold_while(tid, [&stage, tid, maps] { return !another_is_there(stage, tid, maps); });
}

// Both CPUs move to buffers of `first_bytes`. The first thread that comes to the `k`-th step on the
// way, an attach that was served or an mmap, is held there.
void move_apart(Stage& stage, std::uint64_t k, std::uint64_t first_bytes,
                std::uint64_t next_bytes) {
    struct Way {
        std::map<pid_t, std::uint64_t> steps;
        bool has_held = false;
    };
    const auto way = std::make_shared<Way>();
    const auto step = [&stage, way, k, next_bytes](pid_t tid) {
        if (way->has_held || ++way->steps[tid] != k) return;
        way->has_held = true;
        hold_through_a_resize(stage, tid, next_bytes);
    };
    stage.set_on_attached([step](const Attached& attached) {
        if (attached.error == 0) step(attached.tid);
    });
    stage.set_on_mapped([step](const Mapped& mapped) { step(mapped.tid); });
    stage.resize(first_bytes);
    emit_everywhere(stage, 1, 70);
    stage.wait_asleep();
    stage.set_on_attached(nullptr);
    stage.set_on_mapped(nullptr);
}

// The same before the `k`-th system call after the attach, when the thread has released its locks.
// (The suite cannot wait within a call of the handler.)
class CallHold {
  public:
    explicit CallHold(Stage& stage) : stage_(stage) {
        stage.set_on_call([this](pid_t tid, long) {
            if (left_ == 0 || tid != attached_ || --left_ > 0) return false;
            held_ = tid;
            return true;
        });
    }
    ~CallHold() {
        stage_.set_on_call(nullptr);
        stage_.set_on_attached(nullptr);
        stage_.set_on_mapped(nullptr);
    }
    CallHold(const CallHold&) = delete;
    CallHold& operator=(const CallHold&) = delete;

    // False: there was no such call before the mmap.
    bool move_apart(std::uint64_t k, std::uint64_t first_bytes, std::uint64_t next_bytes) {
        attached_ = held_ = 0;
        left_ = 0;
        stage_.set_on_attached([this, k](const Attached& attached) {
            if (attached.error != 0 || attached_ != 0) return;
            attached_ = attached.tid;
            left_ = k;
        });
        stage_.set_on_mapped([this](const Mapped& mapped) {
            if (mapped.tid == attached_) left_ = 0;
        });
        stage_.resize(first_bytes);
        emit_everywhere(stage_, 1, 70);
        stage_.wait_until_or_asleep([this] { return held_ != 0; }, 0);
        stage_.set_on_attached(nullptr);
        stage_.set_on_mapped(nullptr);
        left_ = 0;
        if (held_ != 0) hold_through_a_resize(stage_, held_, next_bytes);
        stage_.wait_asleep();
        return held_ != 0;
    }

  private:
    Stage& stage_;
    pid_t attached_ = 0;
    std::uint64_t left_ = 0;
    pid_t held_ = 0;
};

CaseOutcome attaches_of_two_capacities(Stage& stage) {
    constexpr std::uint64_t kSteps = 4;
    constexpr std::uint64_t kCalls = 8;
    set_up_cpus(stage, 2);
    const std::uint64_t bytes = stage.capacity_bytes();
    CallHold hold(stage);
    stage.start();
    stage.wait_asleep();
    for (std::uint64_t k = 1; k <= kSteps; ++k) {
        move_apart(stage, k, 2 * bytes, bytes);
        move_apart(stage, k, bytes, 2 * bytes);
    }
    for (std::uint64_t k = 1; k <= kCalls; ++k) {
        if (!hold.move_apart(k, 2 * bytes, bytes)) break;
    }
    return stage.finish();
}

CaseOutcome attach_in_the_boot_phase(Stage& stage) {
    constexpr int kTriesAtMost = 400;
    RingsSetup setup = stage.default_setup();
    setup.boot_capacity_bytes = 65536;
    stage.set_up(setup);
    emit_everywhere(stage, 5, 300);
    stage.start();
    // It may end at the first EAGAIN, which is right.
    for (int i = 0; i < kTriesAtMost && stage.attaches().size() < 3; ++i) stage.let_run(5);
    emit_everywhere(stage, 5, 300);
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
        stage.rings().hand_over(cpu, SwapSpec{stage.capacity_bytes(), PositionRule::keep, 0});
        emit_some(stage, cpu, 2, 100);
        stage.let_run(2);
    }
    if (!stage.wait_mapped_or_exit()) return stage.finish_any_exit();
    stage.wait_delivered();
    emit_everywhere(stage, 3, 100);
    stage.wait_asleep();
    return stage.finish();
}

// -- Numbers at the ends of their range ------------------------------------------------------

// futex_counter moves by one for each wake: eight of them take it over the end.
CaseOutcome counter_from(Stage& stage, std::uint32_t first) {
    RingsSetup setup = stage.default_setup();
    setup.first_futex_counter = first;
    stage.set_up(setup);
    stage.start();
    stage.wait_asleep();
    for (int round = 0; round < 8; ++round) {
        emit_everywhere(stage, 1, 100);
        stage.wait_asleep();
    }
    return stage.finish();
}

CaseOutcome sequences_from(Stage& stage, std::uint64_t first) {
    RingsSetup setup = stage.default_setup();
    setup.first_sequence = first;
    stage.set_up(setup);
    emit_everywhere(stage, 2, 100);
    stage.start();
    stage.wait_asleep();
    emit_everywhere(stage, 3, 100);
    stage.wait_asleep();
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) stage.rings().drop(cpu);
    emit_everywhere(stage, 2, 100);
    stage.resize(2 * stage.capacity_bytes());
    emit_everywhere(stage, 2, 100);
    stage.wait_asleep();
    return stage.finish();
}

// Buffers that have been replaced often. (A case with 2^63 resizes is impossible, so no case asks
// for such a number.)
CaseOutcome generations_beyond_32_bits(Stage& stage) {
    RingsSetup setup = stage.default_setup();
    setup.first_generation = (1ull << 32) - 2;
    stage.set_up(setup);
    emit_everywhere(stage, 2, 100);
    stage.start();
    stage.wait_asleep();
    for (int round = 0; round < 3; ++round) {
        emit_everywhere(stage, 2, 100);
        stage.resize(round % 2 == 0 ? 2 * stage.capacity_bytes() : stage.capacity_bytes());
        emit_everywhere(stage, 2, 100);
        stage.wait_asleep();
    }
    return stage.finish();
}

CaseOutcome long_runs_of_drops(Stage& stage) {
    stage.start();
    stage.wait_asleep();
    emit_everywhere(stage, 1, 100);
    for (const int drops : {255, 256, 300}) {
        for (int i = 0; i < drops; ++i) stage.rings().drop(0);
        stage.wait_asleep();
        emit_everywhere(stage, 1, 100);
    }
    stage.wait_asleep();
    return stage.finish();
}

CaseOutcome timestamps_at_the_ends(Stage& stage) {
    stage.rings().take_timestamps_as_given();
    stage.start();
    stage.wait_mapped();
    for (const std::uint64_t timestamp :
         {0ull, 0xffff'ffff'ffff'ffffull, 0ull, 1ull, 0x8000'0000'0000'0000ull, 0ull}) {
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
            EventSpec spec = stage.rings().make(64);
            spec.timestamp = timestamp;
            stage.rings().emit(cpu, std::move(spec));
        }
    }
    stage.wait_asleep();
    return stage.finish();
}

void add_number_cases(const AddCase& add) {
    constexpr std::string_view kAll =
        "The consumer delivers every event once, in order, with its sequence number and timestamp.";
    add("5.1.6.3/counter-wraps", Level::must, "5.1.6.3", "futex_counter across 2^32",
        "Set futex_counter to three below 2^32. Emit eight events, each to a sleeping consumer.",
        kComparesCounter, [](Stage& stage) { return counter_from(stage, 0xfffffffd); });
    add("5.1.6.3/counter-beyond-31-bits", Level::must, "5.1.6.3", "futex_counter across 2^31",
        "Set futex_counter to three below 2^31. Emit eight events, each to a sleeping consumer.",
        kComparesCounter, [](Stage& stage) { return counter_from(stage, 0x7ffffffd); });
    add("event-model/sequences-beyond-32-bits", Level::must, "event-model",
        "sequence numbers beyond 2^32",
        "Let the sequence numbers cross 2^32. Drop an event and resize afterwards.", kAll,
        [](Stage& stage) { return sequences_from(stage, (1ull << 32) - 3); });
    add("event-model/sequences-beyond-63-bits", Level::must, "event-model",
        "sequence numbers beyond 2^63",
        "Let the sequence numbers cross 2^63. Drop an event and resize afterwards.", kAll,
        [](Stage& stage) { return sequences_from(stage, (1ull << 63) - 3); });
    add("5.1.6.1/generations-beyond-32-bits", Level::must, "5.1.6.1", "generation beyond 2^32",
        "Set the generation of the first buffers to two below 2^32. Resize three times.", kAll,
        generations_beyond_32_bits);
    add("5.1.9/long-runs-of-drops", Level::must, "5.1.9", "hundreds of dropped events in a row",
        "Drop 255, 256 and 300 events in a row, without a wake.",
        "The consumer delivers what follows. An L record, where there is one, has the exact "
        "number.",
        long_runs_of_drops);
    add("event-model/timestamps-at-the-ends", Level::must, "event-model",
        "timestamps of 0 and 2^64 - 1", "Emit events with timestamps of 0, 1, 2^63 and 2^64 - 1.",
        kAll, timestamps_at_the_ends);
}

// -- Three hundred times ---------------------------------------------------------------------

// By then counters of a byte have gone round, and tables that were large enough are full.
constexpr int kThreeHundred = 300;

CaseOutcome event_after_three_hundred_sleeps(Stage& stage) {
    set_up_one_cpu(stage);
    stage.start();
    for (int i = 0; i < kThreeHundred && !stage.has_ended(0); ++i) {
        stage.wait_asleep();
        emit_some(stage, 0, 1, 40);
    }
    act_at_every_access(stage, 0, [&stage] { emit_some(stage, 0, 1, 70); });
    return stage.finish();
}

CaseOutcome three_hundred_changes(Stage& stage) {
    constexpr rlim_t kFilesOfABuffer = 4;
    set_up_one_cpu(stage);
    stage.start();
    stage.wait_asleep();
    const ManyFiles files(kFilesOfABuffer * kThreeHundred);
    for (int i = 0; i < kThreeHundred && !stage.has_ended(0); ++i) {
        stage.resize(stage.capacity_bytes());
        emit_some(stage, 0, 1, 40);
        stage.wait_asleep();
    }
    return stage.finish();
}

}  // namespace

void add_resource_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add_number_cases(add);
    add("5.1.3/largest-capacity", Level::must, "5.1.3", "buffers of 256 MiB",
        "Use the largest capacity that can be configured, with events around the end of the ring. "
        "Then resize to the usual one.",
        "The consumer delivers every event.", largest_capacity);
    add("5.1.9/paused-for-ten-laps", Level::must, "5.1.9", "a pause of ten laps",
        "Stop the consumer in the middle of its drain. Overwrite the ring ten times.",
        kContinuesAtTail, paused_for_ten_laps);
    add("5.1.2/attach-in-the-boot-phase", Level::must, "5.1.2", "an attach before the hand-over",
        "Start the consumer in the boot phase. Answer kmes_attach with EAGAIN until the last CPU "
        "is handed over. Emit events before, between and after.",
        "The consumer tries again until it succeeds and delivers what survives, or exits with a "
        "non-zero status.",
        attach_in_the_boot_phase);
    add("E19/resize-at-every-step-of-an-attach", Level::erratum, "E19",
        "a resize at every step of an attach",
        "While the consumer moves to a new buffer, replace that one, too: after each attach, after "
        "the mmap, before each access to the page in turn. Nudge retired buffers.",
        "The consumer ends up in the current buffer, loses nothing and delivers nothing twice.",
        resize_at_every_step_of_an_attach);
    add("E14/attaches-of-two-capacities", Level::erratum, "E14",
        "two threads that attach at the same time",
        "While two CPUs move to new buffers, hold one thread after each attach and mmap in turn, "
        "and before each system call in between. Replace both buffers by larger or smaller ones, "
        "and let another thread move on to those.",
        "The consumer uses each buffer with the capacity of its own attach, and refuses and loses "
        "nothing.",
        attaches_of_two_capacities);
}

void add_three_hundred_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add("5.1.8.2-2/event-at-every-step-after-three-hundred-sleeps", Level::must, "5.1.8.2-2",
        "an event at every step after three hundred sleeps",
        "Emit 300 events on one CPU, one whenever its consumer sleeps. Then emit one before each "
        "of its accesses to the metadata page in turn.",
        kDelivers, event_after_three_hundred_sleeps);
    add("5.1.8.3/three-hundred-changes", Level::must, "5.1.8.3",
        "three hundred new buffers on one CPU",
        "Replace the buffer of one CPU 300 times, with an event after each.", kFollows,
        three_hundred_changes);
}

}  // namespace kmes::conformance
