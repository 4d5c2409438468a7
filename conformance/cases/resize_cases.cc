// SPDX-License-Identifier: MIT
//
// Changes of buffers (5.1.8.3, 5.1.8.4, E3, E10, E11, E15, E19, E21, E24).
#include <fmt/format.h>

#include <algorithm>

#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

// Texts of several cases.
constexpr std::string_view kFollowsCapacity =
    "The consumer attaches again, reads the new capacity, loses nothing and delivers nothing "
    "twice.";
constexpr std::string_view kLoadsWritePosAgain =
    "The consumer loads write_pos of the old buffer again after generation has changed, and loses "
    "nothing.";

// Events before, a resize, events after; everything fits everywhere.
CaseOutcome resized(Stage& stage, std::uint64_t first, std::uint64_t second, PositionRule rule,
                    std::uint64_t position) {
    RingsSetup setup = stage.default_setup();
    setup.capacity_bytes = first;
    // Not 0: the positions in the new buffer may lie below the old ones.
    for (std::uint32_t cpu = 0; cpu < setup.cpus; ++cpu)
        setup.start_positions.push_back(1'000'000 + 11 * cpu);
    stage.set_up(setup);
    emit_everywhere(stage, 5, 500);
    stage.start();
    stage.wait_asleep();
    emit_everywhere(stage, 5, 500);
    stage.wait_delivered();
    stage.resize(second, rule, position);
    emit_everywhere(stage, 5, 700);
    stage.wait_asleep();
    emit_everywhere(stage, 3, 900);
    stage.wait_asleep();
    // Larger than all that the first buffer could hold, where the second one can.
    if (second > 2 * first) {
        emit_everywhere(stage, 1, second / 2);
        stage.wait_asleep();
    }
    return stage.finish();
}

CaseOutcome grow(Stage& stage) {
    const std::uint64_t first = stage.default_setup().capacity_bytes;
    return resized(stage, first, 4 * first, PositionRule::keep, 0);
}

CaseOutcome shrink(Stage& stage) {
    const std::uint64_t second = stage.default_setup().capacity_bytes;
    return resized(stage, 4 * second, second, PositionRule::keep, 0);
}

CaseOutcome positions_at_zero(Stage& stage) {
    const std::uint64_t first = stage.default_setup().capacity_bytes;
    return resized(stage, first, 2 * first, PositionRule::tail_at, 0);
}

CaseOutcome positions_shifted(Stage& stage) {
    const std::uint64_t first = stage.default_setup().capacity_bytes;
    return resized(stage, first, first, PositionRule::shift, 12345678901);
}

// The old buffer holds more than fits into the new one, and the consumer has read none of it.
CaseOutcome unread_in_the_old(Stage& stage) {
    const std::uint64_t small = stage.default_setup().capacity_bytes;
    RingsSetup setup = stage.default_setup();
    setup.capacity_bytes = 4 * small;
    stage.set_up(setup);
    stage.start();
    stage.wait_asleep();
    for (int round = 0; round < 2; ++round) {
        // It is proven to read this buffer, and not only to have it.
        emit_everywhere(stage, 1, 100);
        stage.wait_asleep();
        stage.freeze();
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
            // In the second round one of them is larger than the next buffer.
            if (round == 1) emit_some(stage, cpu, 1, 2 * small);
            emit_some(stage, cpu, round == 0 ? 24 : 8, small / 8);
        }
        stage.resize(small);
        emit_everywhere(stage, 2, 100);
        stage.thaw();
        stage.wait_asleep();
        stage.resize(4 * small);
        stage.wait_asleep();
    }
    return stage.finish();
}

// Everything in the old buffer has been delivered; the copies in the new one are not new.
CaseOutcome nothing_twice(Stage& stage) {
    emit_everywhere(stage, 30, 400);
    stage.start();
    stage.wait_asleep();
    stage.resize(stage.capacity_bytes());
    stage.wait_asleep();
    emit_everywhere(stage, 1, 400);
    stage.wait_asleep();
    return stage.finish();
}

CaseOutcome two_at_once(Stage& stage, bool with_events) {
    emit_everywhere(stage, 4, 200);
    stage.start();
    stage.wait_asleep();
    for (int round = 0; round < 3; ++round) {
        stage.freeze();
        if (with_events) emit_everywhere(stage, 2, 200);
        std::vector<BufferIndex> first;
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu)
            first.push_back(stage.rings().history().present_buffer(cpu));
        stage.resize(2 * stage.capacity_bytes());
        if (with_events) emit_everywhere(stage, 2, 200);
        stage.resize(stage.capacity_bytes() / 2);
        // E19: at every later swap, the buffers that were retired before are nudged.
        for (const BufferIndex buffer : first) stage.rings().nudge(buffer);
        if (with_events) emit_everywhere(stage, 2, 200);
        stage.thaw();
        stage.wait_asleep();
    }
    return stage.finish();
}

// E21: one last sequence number over all buffers: nothing was found in the buffer between.
CaseOutcome swaps_without_events(Stage& stage) {
    emit_everywhere(stage, 10, 200);
    stage.start();
    stage.wait_asleep();
    for (int round = 0; round < 4; ++round) {
        stage.resize(stage.capacity_bytes());
        stage.wait_asleep();
    }
    emit_everywhere(stage, 1, 200);
    stage.wait_asleep();
    return stage.finish();
}

// The same, with an event before the first access to the new buffer each time.
CaseOutcome event_behind_swaps(Stage& stage) {
    emit_everywhere(stage, 4, 200);
    stage.start();
    for (const std::uint64_t events : {0, 0, 1, 0, 3, 2}) {
        stage.wait_asleep();
        stage.freeze();
        stage.resize(stage.capacity_bytes());
        emit_everywhere(stage, events, 200);
        stage.thaw();
    }
    stage.wait_asleep();
    return stage.finish();
}

// The newest event does not fit into the smaller buffer, so that nothing is copied: a buffer that
// is empty, of a CPU of which events were delivered.
CaseOutcome nothing_survives(Stage& stage) {
    constexpr std::uint64_t kSmall = 65536;
    constexpr std::uint64_t kLarge = 4 * kSmall;
    set_up_one_cpu(stage, kLarge);
    emit_some(stage, 0, 1, 100);
    stage.rings().drop(0);
    emit_some(stage, 0, 1, 100);
    stage.start();
    for (int round = 0; round < 3; ++round) {
        if (stage.capacity_bytes() != kLarge) stage.resize(kLarge);
        emit_some(stage, 0, 1, kLarge / 2);
        stage.wait_asleep();
        stage.resize(kSmall);
        stage.wait_asleep();
        for (int lost = 0; lost <= round; ++lost) stage.rings().drop(0);
        emit_some(stage, 0, 2, 100);
        stage.wait_asleep();
    }
    return stage.finish();
}

// Only the sequence number tells what is new: a clock may be set back, and a batch has one time.
CaseOutcome clock_over_a_swap(Stage& stage) {
    constexpr std::uint64_t kHourNs = 3'600'000'000'000;
    emit_everywhere(stage, 3, 200);
    stage.start();
    for (int round = 0; round < 3; ++round) {
        stage.wait_asleep();
        stage.freeze();
        stage.resize(stage.capacity_bytes());
        if (round > 0) stage.rings().set_clock(stage.rings().clock() - kHourNs);
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
            std::vector<EventSpec> specs;
            for (int i = 0; i < 4; ++i) specs.push_back(stage.rings().make(100));
            stage.rings().batch(cpu, specs);
        }
        stage.thaw();
    }
    stage.wait_asleep();
    return stage.finish();
}

// The new buffer still holds events that were delivered from the old one. They are overwritten at
// the first access to them.
CaseOutcome torn_while_it_scans(Stage& stage) {
    set_up_one_cpu(stage);
    stage.start();
    for (const char filling : {'\0', '\xff', '\x1e'}) {
        stage.wait_asleep();
        if (stage.has_ended(0)) break;  // refused: the judge says whether rightly
        emit_some(stage, 0, 8, 1000);
        stage.wait_asleep();
        bool is_done = false;
        stage.set_on_mapped([&stage, &is_done, filling](const Mapped& mapped) {
            if (is_done || !stage.is_present(mapped, 0)) return;
            stage.guard(0, 1, capacity(stage, 0) / kPageBytes, [&stage, &is_done, filling](auto&) {
                is_done = true;
                overwrite_all(stage, [filling](std::string& payload, std::uint64_t) {
                    payload.assign(payload.size(), filling);
                });
                return Stage::AtGuard::release;
            });
        });
        stage.resize(stage.capacity_bytes());
        stage.wait_asleep();
        stage.set_on_mapped(nullptr);
        stage.release_guards();
    }
    return stage.finish();
}

// The content of a full buffer, and the event that overwrites its oldest at the first access to the
// next buffer: at its metadata page, or at any page.
struct OverSurvivors {
    std::uint64_t filled_bytes;
    std::uint64_t event_bytes;
    bool at_data;
};

// The new buffer is full of what was delivered from the old one. At the testee's k-th access to it
// an event comes, over the oldest few of them. False: there was no k-th.
bool lap_in_part_at(Stage& stage, const OverSurvivors& over, int access) {
    stage.wait_asleep();
    if (stage.has_ended(0)) return false;
    lap(stage, 0, over.filled_bytes);
    stage.wait_asleep();
    bool is_done = false;
    int left = access;
    const std::uint64_t pages = 1 + (over.at_data ? 2 * stage.capacity_bytes() / kPageBytes : 0);
    stage.set_on_mapped([&](const Mapped& mapped) {
        if (is_done || !stage.is_present(mapped, 0)) return;
        stage.guard(0, 0, pages, [&](const GuardHit&) {
            if (is_done || --left > 0) return Stage::AtGuard::step;
            is_done = true;
            emit_some(stage, 0, 1, over.event_bytes);
            return Stage::AtGuard::release;
        });
    });
    stage.resize(stage.capacity_bytes());
    stage.wait_asleep();
    stage.set_on_mapped(nullptr);
    stage.release_guards();
    return is_done;
}

CaseOutcome lapped_in_part_while_it_scans(Stage& stage, const OverSurvivors& over, int accesses) {
    set_up_one_cpu(stage);
    stage.start();
    WalkLimit limit(stage);
    for (int access = 1; access <= accesses && !limit.is_over(); ++access) {
        if (!lap_in_part_at(stage, over, access)) break;
    }
    return stage.finish();
}

// The new event is exactly where the oldest one was.
constexpr OverSurvivors kOneOverOne{64, 64, true};
constexpr OverSurvivors kOneOverAFew{4000, 8000, false};

// E15: what differs is what has changed, however much of it is the same.
CaseOutcome generation_jumps(Stage& stage) {
    set_up_one_cpu(stage);
    stage.start();
    stage.set_nudging(false);  // beyond those that make the jump
    for (const int jump : {4, 16, 256, 65536}) {
        stage.wait_asleep();
        stage.freeze();
        const BufferIndex old_buffer = stage.rings().history().present_buffer(0);
        stage.resize(stage.capacity_bytes());
        // Each adds one to the generation of the retired buffer; so did the swap.
        for (int nudge = 1; nudge < jump; ++nudge) stage.rings().nudge(old_buffer);
        emit_some(stage, 0, 1, 100);
        stage.thaw();
    }
    stage.wait_asleep();
    return stage.finish();
}

// Overwrites the whole buffer between the swap and the consumer's first access to the new one.
CaseOutcome lapped_over_a_swap(Stage& stage) {
    emit_everywhere(stage, 4, 200);
    stage.start();
    stage.wait_asleep();
    for (int round = 0; round < 3; ++round) {
        stage.freeze();
        emit_everywhere(stage, 2, 300);
        stage.resize(stage.capacity_bytes());
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) lap(stage, cpu, 2500);
        stage.thaw();
        stage.wait_asleep();
    }
    return stage.finish();
}

// E19: swapped after the mmap and before generation can have been read: what is read there is the
// successor's number, in a buffer that is dead.
CaseOutcome swap_behind_the_mmap(Stage& stage) {
    int left = 3;
    stage.set_on_mapped([&stage, &left](const Mapped&) {
        if (left <= 0) return;
        --left;
        stage.resize(stage.capacity_bytes());
    });
    emit_everywhere(stage, 2, 100);
    stage.start();
    stage.wait_delivered();
    emit_everywhere(stage, 2, 100);
    stage.wait_asleep();
    left = 2;
    stage.resize(stage.capacity_bytes());
    stage.wait_asleep();
    emit_everywhere(stage, 2, 100);
    stage.wait_asleep();
    return stage.finish();
}

// The buffer that is retired before it is read has events that no other one has: a consumer that
// delivers them has moved to it.
CaseOutcome swap_behind_the_mmap_with_events(Stage& stage) {
    constexpr int kTimes = 3;
    const std::uint64_t large = stage.default_setup().capacity_bytes;
    const std::uint64_t small = large / 8;
    set_up_one_cpu(stage, small);
    stage.start();
    for (int i = 0; i < kTimes; ++i) {
        stage.wait_asleep();
        if (stage.has_ended(0)) break;
        bool is_done = false;
        stage.set_on_mapped([&](const Mapped& mapped) {
            if (is_done || !stage.is_present(mapped, 0)) return;
            is_done = true;
            emit_some(stage, 0, 3, 100);
            emit_some(stage, 0, 1, large / 2);  // nothing of it fits into the next one
            stage.resize(small);
            emit_some(stage, 0, 1, 100);
        });
        stage.resize(large);
        stage.wait_asleep();
        stage.set_on_mapped(nullptr);
    }
    return stage.finish();
}

// E15, E19: the generation of a retired buffer changes while the consumer reads another one.
CaseOutcome nudged(Stage& stage) {
    emit_everywhere(stage, 2, 100);
    stage.start();
    stage.wait_asleep();
    for (int round = 0; round < 3; ++round) {
        stage.freeze();
        std::vector<BufferIndex> old;
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu)
            old.push_back(stage.rings().history().present_buffer(cpu));
        emit_everywhere(stage, 1, 100);
        stage.resize(stage.capacity_bytes());
        for (const BufferIndex buffer : old) {
            for (int times = 0; times <= round; ++times) stage.rings().nudge(buffer);
        }
        emit_everywhere(stage, 1, 100);
        stage.thaw();
        stage.wait_asleep();
    }
    return stage.finish();
}

CaseOutcome swap_at_every_access_while_draining(Stage& stage) {
    stage.start();
    stage.wait_asleep();
    stage.set_nudging(false);
    act_at_every_access(stage, 0, [&stage] { leave_in_the_old_buffer(stage, 1); });
    return stage.finish();
}

// The same where the round has found nothing by then: it was woken without an event.
CaseOutcome swap_at_every_access_of_an_empty_round(Stage& stage) {
    stage.start();
    stage.wait_asleep();
    stage.set_nudging(false);
    act_at_every_access_after_nothing(stage, 0, [&stage] { leave_in_the_old_buffer(stage, 5); });
    return stage.finish();
}

// The end event is the last of a buffer that is replaced: on a CPU for each access at which that
// may happen.
CaseOutcome end_at_every_step(Stage& stage) {
    constexpr std::uint32_t kAccesses = 14;
    set_up_cpus(stage, kAccesses + 1);
    stage.start();
    stage.set_nudging(false);
    WalkLimit limit(stage);
    for (std::uint32_t cpu = 0; cpu < kAccesses && !limit.is_over(); ++cpu) {
        stage.wait_asleep();
        const bool came = act_at_access(stage, cpu, cpu + 1, [&stage, cpu] {
            stage.rings().emit(cpu, stage.rings().make_end());
            stage.rings().swap(cpu, SwapSpec{stage.capacity_bytes()});
        });
        if (!came) break;
    }
    return stage.finish();
}

// Retired buffers that are still open or mapped when everybody has long moved on.
CaseOutcome closes_what_it_leaves(Stage& stage) {
    const Stage::ShortenedWaits shortened_waits(stage);
    stage.start();
    stage.wait_asleep();
    constexpr int kSwaps = 20;
    for (int round = 0; round < kSwaps; ++round) {
        stage.resize(stage.capacity_bytes());
        emit_everywhere(stage, 1, 100);
        stage.wait_asleep();
    }
    // One buffer a CPU is in use; a consumer may let go late, by a timer too, but not of everything
    // ever.
    const std::size_t most = 4 * static_cast<std::size_t>(stage.cpus());
    give_time(stage, [&] {
        Tracer& tracer = stage.tracer();
        return std::max(tracer.mappings().size(), tracer.open_fds().size()) <= most;
    });
    const auto expect_few = [&](std::size_t count, std::string_view what) {
        if (count <= most) return;
        stage.blame(
            "5.1.8.3-6",
            fmt::format("the consumer has {1} {2} of buffers after {0} resizes; expected about "
                        "{3}, one for each CPU. Evidence: the others belong to old buffers",
                        kSwaps, count, what, stage.cpus()));
    };
    expect_few(stage.tracer().mappings().size(), "mappings");
    expect_few(stage.tracer().open_fds().size(), "open fds");
    return stage.finish();
}

// Several changes of buffers before, or without, an event.
void add_swap_cases(const AddCase& add) {
    add("E15/two-swaps-at-once", Level::erratum, "E15", "two resizes at once",
        "Resize twice while the consumer is stopped, with events before, between and after.",
        "The consumer takes any change of generation as a change, and loses nothing that survives.",
        [](Stage& stage) { return two_at_once(stage, true); });
    add("E15/two-swaps-without-events", Level::erratum, "E15", "two resizes without an event",
        "Resize twice while the consumer is stopped, without events.",
        "The consumer ends up in the newest buffer.",
        [](Stage& stage) { return two_at_once(stage, false); });
    add("E15/generation-jumps", Level::erratum, "E15", "generation higher by 4 to 65,536",
        "Resize while the consumer is stopped. Nudge the retired buffer until its generation is 4, "
        "16, 256 and 65,536 higher than the consumer's value.",
        "The consumer takes any change of generation as a change.", generation_jumps);
    add("E21/swaps-without-events-between", Level::erratum, "E21",
        "several resizes without an event",
        "Resize four times, one after the other, without events.",
        "The consumer keeps the last sequence number of the CPU over all buffers, and delivers "
        "nothing again.",
        swaps_without_events);
    add("E21/event-behind-swaps-without-events", Level::erratum, "E21",
        "an event after resizes without one",
        "Resize six times, some of them with events in the new buffer before the consumer reads "
        "it, some without.",
        "The consumer begins at tail_pos of each new buffer, loses nothing and delivers nothing "
        "again.",
        event_behind_swaps);
    add("E21/nothing-survives", Level::erratum, "E21", "a smaller buffer into which nothing fits",
        "Make the newest event too large for the next buffer, so that the next one is empty. Then "
        "use sequence numbers without an event, and emit events. Repeat three times.",
        "The consumer keeps the last sequence number of the CPU. An L record, where there is one, "
        "counts what is missing since the old buffer.",
        nothing_survives);
    add("E21/torn-while-it-finds-its-place", Level::erratum, "E21",
        "an overwrite during the search for new events",
        "Replace the buffer by one with delivered events only. When the consumer first reads them, "
        "overwrite all of them by headers of zeros, of ones and of sizes of 485 MiB.",
        "The consumer searches for its place by the ordinary loop, with all checks.",
        torn_while_it_scans);
    add("E21/lapped-in-part-while-it-finds-its-place", Level::erratum, "E21",
        "a partial lap during the search for new events",
        "Fill the new buffer with delivered events. At each of the first accesses to its metadata "
        "page in turn, emit an event over the oldest few.",
        "The consumer continues at tail_pos, still skips the events that it knows, and delivers "
        "nothing again.",
        [](Stage& stage) { return lapped_in_part_while_it_scans(stage, kOneOverAFew, 24); });
    add("E21/new-over-the-first-that-it-scans", Level::erratum, "E21",
        "a new event in the place of the first old one",
        "Fill the new buffer with delivered events of 64 bytes. At each of the first accesses to "
        "it in turn, emit one of 64 bytes exactly over the oldest.",
        "The consumer discards the overwritten event, continues at tail_pos, and still skips the "
        "events that it knows.",
        [](Stage& stage) { return lapped_in_part_while_it_scans(stage, kOneOverOne, 60); });
    add("5.1.8.3-5/clock-set-back-over-a-swap", Level::must, "5.1.8.3-5",
        "a clock set back, and a batch, during a resize",
        "Resize, each time with a batch of four events in the new buffer. Set the clock back by an "
        "hour before the second and the third resize.",
        "The consumer finds new events by their sequence number, not by their time.",
        clock_over_a_swap);
    add("E21/lapped-over-a-swap", Level::erratum, "E21", "a lap of the new buffer",
        "Resize, and lap the new buffer before the consumer continues.",
        "The consumer delivers what survives in either buffer once, in order.", lapped_over_a_swap);
}

}  // namespace

void add_first_resize_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add("5.1.8.3/grow", Level::must, "5.1.8.3", "larger buffers",
        "Resize to four times the capacity, with events before and after.", kFollowsCapacity, grow);
    add("5.1.8.3/shrink", Level::must, "5.1.8.3", "smaller buffers",
        "Resize to a quarter of the capacity, with events before and after.", kFollowsCapacity,
        shrink);
    add("5.1.8.3-5/nothing-twice", Level::must, "5.1.8.3-5",
        "a new buffer with delivered events only",
        "Resize after every event is delivered. The new buffer holds copies of them.",
        "The consumer delivers none of them again.", nothing_twice);
}

void add_resize_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add("E10/end-at-every-step", Level::erratum, "E10", "an end event, then another buffer",
        "Before an access to the metadata page, another one on each CPU, emit the end event and "
        "replace the buffer.",
        "The consumer delivers the end event from the old buffer or from the new one, and ends the "
        "CPU.",
        end_at_every_step);
    add("E10/unread-in-the-old-buffer", Level::erratum, "E10", "the old buffer before the new one",
        "Replace a buffer with unread events of three times what fits into the new one.",
        "The consumer drains the old buffer to its frozen write_pos before it switches, and loses "
        "nothing.",
        unread_in_the_old);
    add("E11/positions-begin-at-zero", Level::erratum, "E11", "a new buffer that begins at 0",
        "Resize, so that the oldest event that survives is at position 0.", kFindsPlace,
        positions_at_zero);
    add("E11/positions-are-shifted", Level::erratum, "E11", "a new buffer with other positions",
        "Resize, so that every position is 12345678901 higher.", kFindsPlace, positions_shifted);
    add_swap_cases(add);
    add("E19/swap-behind-the-mmap", Level::erratum, "E19",
        "a buffer retired before its generation is read",
        "Resize every buffer just after one is mapped and before its generation can have been "
        "read. Nudge a consumer that sleeps on the retired buffer.",
        "The consumer attaches again and finds the current buffer, at once or at the nudge.",
        swap_behind_the_mmap);
    add("E19/swap-with-events-behind-the-mmap", Level::erratum, "E19",
        "a buffer with events of its own retired before its generation is read",
        "Just after the next buffer is mapped, emit four events, and replace the buffer by one "
        "into which they do not fit.",
        "The consumer delivers the four events, and writes a G record for each of the two "
        "buffers.",
        swap_behind_the_mmap_with_events);
    add("E19/nudged", Level::erratum, "E19", "nudges of retired buffers",
        "Increment the generation of a retired buffer one to three times more.",
        "The consumer moves to the new buffer once and delivers nothing twice.", nudged);
    add("E24/swap-at-every-step", Level::erratum, "E24", "a resize at every step of a drain",
        "Before each access to CPU 0's metadata page in turn, emit an event, resize with shifted "
        "positions, and lap the new buffer.",
        kLoadsWritePosAgain, swap_at_every_access_while_draining);
    add("E24/swap-at-every-step-of-an-empty-round", Level::erratum, "E24",
        "a resize at every step of an iteration without events",
        "Wake the consumer of CPU 0 without an event. Before each access to the metadata page in "
        "turn, emit five events, resize with shifted positions, and lap the new buffer.",
        kLoadsWritePosAgain, swap_at_every_access_of_an_empty_round);
    add("5.1.8.3-6/closes-what-it-leaves", Level::should, "5.1.8.3-6",
        "files and mappings of old buffers",
        "Resize twenty times, one after the other, with an event each.",
        "The consumer closes the fds and unmaps the mappings of old buffers.",
        closes_what_it_leaves);
}

}  // namespace kmes::conformance
