// SPDX-License-Identifier: MIT
//
// Changes of buffers (5.1.8.3, 5.1.8.4, E3, E10, E11, E15, E19 to E21, E24).
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>
#include <vector>

#include "conformance/cases/play.h"
#include "conformance/model/step_texts.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

// Texts of several cases.
constexpr std::string_view kFollowsCapacity =
    "The consumer attaches again, reads the new capacity, loses nothing and delivers nothing "
    "twice.";
constexpr std::string_view kLoadsWritePosAgain =
    "The consumer loads write_pos of the old buffer again after generation has changed, and loses "
    "nothing.";

constexpr std::uint64_t kSmallRegion = 64 * kKibibyte;

// Begins far from position 0, so that the positions in the new buffer may be lower than the old
// ones.
Setup far_on(Amount capacity) {
    return {.capacity = capacity,
            .position = 1'000'000,
            .position_step = 11,
            .before_start = {EmitEverywhere{5, 500}}};
}

// Events before and after a resize. All fit into each buffer.
Step resized(Amount capacity, PositionRule rule = PositionRule::keep, std::uint64_t position = 0) {
    return InOrder{{Asleep{}, EmitEverywhere{5, 500}, Delivered{}, Resize{capacity, rule, position},
                    EmitEverywhere{5, 700}, Asleep{}, EmitEverywhere{3, 900}, Asleep{}}};
}

// The old buffer contains more than fits into the new one, and the consumer has read none of it. It
// has delivered an earlier event from the old buffer.
Step unread_before_a_shrink(const Steps& unread) {
    return InOrder{{EmitEverywhere{}, Asleep{},
                    AtOnce{{OnEachCpu{unread}, Resize{usual()}, EmitEverywhere{2, 100}}}, Asleep{},
                    Resize{usual(4)}, Asleep{}}};
}

// E19: at every later swap, the buffers that were retired before are nudged.
Steps resized_twice(std::uint64_t events) {
    return {AtOnce{{EmitEverywhere{events, 200}, Resize{current(2)}, EmitEverywhere{events, 200},
                    Resize{current(1, 2)}, NudgeRetired{.resizes_ago = 2},
                    EmitEverywhere{events, 200}}},
            Asleep{}};
}

// The newest event does not fit into the smaller buffer, so nothing is copied: an empty buffer of a
// CPU with delivered events.
Steps empty_next_buffer(std::uint64_t done) {
    return {Times{done > 0 ? 1u : 0u, {Resize{4 * kSmallRegion}}},
            Emit{1, 2 * kSmallRegion},
            Asleep{},
            Resize{kSmallRegion},
            Asleep{},
            Drop{done + 1},
            Emit{2, 100},
            Asleep{}};
}

// The buffer is full of delivered events, and so is the next one.
Steps filled_by(std::uint64_t event_bytes) {
    return {Asleep{}, EndIfRefused{}, Lap{event_bytes}, Asleep{}};
}

// Only the sequence number shows which events are new: a clock can go back, and a batch has one
// timestamp.
Step set_clock_back(std::uint64_t hours) {
    return Call{[hours](Stage& stage) {
        constexpr std::uint64_t kHourNs = 3'600'000'000'000;
        stage.rings().events().set_clock(stage.rings().events().clock() - hours * kHourNs);
    }};
}

// E19: a swap after the mmap and before generation can have been loaded. The load then gives the
// successor's number, in a dead buffer.
CaseOutcome swap_after_the_mmap(Stage& stage) {
    int left = 3;
    stage.hooks().set_on_mapped([&stage, &left](const Mapped&) {
        if (left <= 0) return;
        --left;
        stage.resize(stage.capacity_bytes());
    });
    emit_everywhere(stage, 2, 100);
    stage.start();
    stage.waits().delivered();
    emit_everywhere(stage, 2, 100);
    stage.wait_asleep();
    left = 2;
    stage.resize(stage.capacity_bytes());
    stage.wait_asleep();
    emit_everywhere(stage, 2, 100);
    stage.wait_asleep();
    return stage.finish();
}

// A buffer that is retired before it is read has events that no other buffer has. A consumer that
// delivers them has moved to it.
CaseOutcome swap_after_the_mmap_with_events(Stage& stage) {
    constexpr int kTimes = 3;
    constexpr std::uint64_t small = kSmallRegion;
    constexpr std::uint64_t large = 8 * small;
    set_up_one_cpu(stage, small);
    stage.start();
    for (int i = 0; i < kTimes; ++i) {
        stage.wait_asleep();
        if (stage.testee().has_ended(0)) break;
        bool is_done = false;
        stage.hooks().set_on_mapped([&](const Mapped& mapped) {
            if (is_done || !is_present(stage, mapped, 0)) return;
            is_done = true;
            emit_some(stage, 0, 3, 100);
            emit_some(stage, 0, 1, large / 2);  // none of it fits into the next buffer
            stage.resize(small);
            emit_some(stage, 0, 1, 100);
        });
        stage.resize(large);
        stage.wait_asleep();
        stage.hooks().set_on_mapped(nullptr);
    }
    return stage.finish();
}

// The end event is the last event of a replaced buffer. One CPU is used for each access at which
// the replacement may happen.
CaseOutcome end_at_every_step(Stage& stage) {
    constexpr std::uint32_t kAccesses = 14;
    set_up_cpus(stage, kAccesses + 1);
    stage.start();
    stage.waits().set_nudging(false);
    WalkLimit limit(stage);
    for (std::uint32_t cpu = 0; cpu < kAccesses && !limit.is_over(); ++cpu) {
        stage.wait_asleep();
        const bool came = act_at_access(stage, cpu, cpu + 1, [&stage, cpu] {
            stage.rings().emit(cpu, stage.rings().events().make_end());
            stage.rings().swap(cpu, SwapSpec{stage.capacity_bytes()});
        });
        if (!came) break;
    }
    return stage.finish();
}

// Finds retired buffers that are still open or mapped long after all threads have moved on.
CaseOutcome closes_what_it_leaves(Stage& stage) {
    const ShortenedWaits shortened_waits(stage.waits());
    stage.start();
    stage.wait_asleep();
    constexpr int kSwaps = 20;
    for (int iteration = 0; iteration < kSwaps; ++iteration) {
        stage.resize(stage.capacity_bytes());
        emit_everywhere(stage, 1, 100);
        stage.wait_asleep();
    }
    // One buffer for each CPU is in use. A consumer may release late, also by a timer, but not keep
    // everything forever.
    const std::size_t most = 4 * static_cast<std::size_t>(stage.cpus());
    give_time(stage, [&] {
        Tracer& tracer = stage.testee().tracer();
        return std::max(tracer.mappings().size(), tracer.open_fds().size()) <= most;
    });
    const auto expect_few = [&](std::size_t count, std::string_view what) {
        if (count <= most) return;
        stage.findings().blame(
            "5.1.8.3-6",
            fmt::format("the consumer has {1} {2} after {0} resizes; expected about {3}, one for "
                        "each CPU. Evidence: the others belong to old buffers",
                        kSwaps, count, what, stage.cpus()));
    };
    expect_few(stage.testee().tracer().mappings().size(), kMappingsOfBuffers);
    expect_few(stage.testee().tracer().open_fds().size(), kOpenDescriptors);
    return stage.finish();
}

const Row kFirstResizeRows[] = {
    {{"5.1.8.3/grow", Level::must, "larger buffers",
      "Resize to four times the capacity, with events before and after.", kFollowsCapacity},
     {resized(usual(4)), EmitEverywhere{1, current(1, 2)}, Asleep{}},
     far_on(usual())},
    {{"5.1.8.3/shrink", Level::must, "smaller buffers",
      "Resize to a quarter of the capacity, with events before and after.", kFollowsCapacity},
     {resized(usual())},
     far_on(usual(4))},
    {{"5.1.8.3-5/no-event-twice", Level::must, "a new buffer with delivered events only",
      "Resize after every event is delivered. The new buffer holds copies of them.",
      "The consumer delivers none of them again."},
     {Asleep{}, Resize{}, Asleep{}, EmitEverywhere{1, 400}, Asleep{}},
     {.before_start = {EmitEverywhere{30, 400}}}},
    {{"E10/unread-in-the-old-buffer", Level::erratum, "the old buffer before the new one",
      "Replace a buffer with unread events of three times what fits into the new one.",
      "The consumer drains the old buffer to its frozen write_pos before it switches, and loses "
      "nothing."},
     {Asleep{}, unread_before_a_shrink({Emit{24, usual(1, 8)}}),
      unread_before_a_shrink({Emit{1, usual(2)}, Emit{8, usual(1, 8)}})},
     {.capacity = usual(4)}},
};

const Row kResizeRows[] = {
    {{"E10/end-at-every-step", Level::erratum, "an end event, then another buffer",
      "Before an access to the metadata page, another one on each CPU, emit the end event and "
      "replace the buffer.",
      "The consumer delivers the end event from the old buffer or from the new one, and ends the "
      "CPU."},
     end_at_every_step},
    {{"E11/positions-begin-at-zero", Level::erratum, "a new buffer that begins at 0",
      "Resize, so that the oldest event that survives is at position 0.", kFindsPlace},
     {resized(usual(2), PositionRule::tail_at, 0)},
     far_on(usual())},
    {{"E11/positions-are-shifted", Level::erratum, "a new buffer with other positions",
      "Resize, so that every position is 12345678901 higher.", kFindsPlace},
     {resized(usual(), PositionRule::shift, 12'345'678'901)},
     far_on(usual())},
    {{"E15/two-swaps-at-once", Level::erratum, "two resizes at once",
      "Resize twice while the consumer is stopped, with events before, between and after.",
      "The consumer takes any change of generation as a change, and loses nothing that survives."},
     {Asleep{}, Times{3, resized_twice(2)}},
     {.before_start = {EmitEverywhere{4, 200}}}},
    {{"E15/two-swaps-without-events", Level::erratum, "two resizes without an event",
      "Resize twice while the consumer is stopped, without events.",
      "The consumer ends up in the newest buffer."},
     {Asleep{}, Times{3, resized_twice(0)}},
     {.before_start = {EmitEverywhere{4, 200}}}},
    {{"E15/generation-jumps", Level::erratum, "generation higher by 4 to 65,536",
      "Resize while the consumer is stopped. Nudge the retired buffer until its generation is 4, "
      "16, 256 and 65,536 higher than the consumer's value.",
      "The consumer takes any change of generation as a change."},
     {each({4, 16, 256, 65'536},
           [](std::uint64_t jump) {
               return Steps{Asleep{}, AtOnce{{Resize{}, NudgeRetired{jump - 1}, Emit{}}}};
           }),
      Asleep{}},
     {.cpus = 1, .nudging = false}},
    {{"E21/swaps-without-events-between", Level::erratum, "several resizes without an event",
      "Resize four times, one after the other, without events.",
      "The consumer keeps the last sequence number of the CPU over all buffers, and delivers "
      "nothing again."},
     {Asleep{}, Times{4, {Resize{}, Asleep{}}}, EmitEverywhere{1, 200}, Asleep{}},
     {.before_start = {EmitEverywhere{10, 200}}}},
    {{"E21/event-after-swaps-without-events", Level::erratum, "an event after resizes without one",
      "Resize six times, some of them with events in the new buffer before the consumer reads it, "
      "some without.",
      "The consumer begins at tail_pos of each new buffer, loses nothing and delivers nothing "
      "again."},
     {each({0, 0, 1, 0, 3, 2},
           [](std::uint64_t events) {
               return Steps{Asleep{}, AtOnce{{Resize{}, EmitEverywhere{events, 200}}}};
           }),
      Asleep{}},
     {.before_start = {EmitEverywhere{4, 200}}}},
    {{"E21/nothing-survives", Level::erratum, "a smaller buffer into which nothing fits",
      "Make the newest event too large for the next buffer, so that the next one is empty. Then "
      "use sequence numbers without an event, and emit events. Repeat three times.",
      "The consumer keeps the last sequence number of the CPU. An L record, where there is one, "
      "counts what is missing since the old buffer."},
     {each_below(3, empty_next_buffer)},
     {.cpus = 1, .capacity = 4 * kSmallRegion, .before_start = {Emit{}, Drop{}, Emit{}}}},
    {{"E21/torn-while-it-finds-its-place", Level::erratum,
      "an overwrite during the search for new events",
      "Replace the buffer by one with delivered events only. When the consumer first reads them, "
      "overwrite all of them by headers of zeros, of ones and of sizes of 485 MiB.",
      "The consumer searches for its place by the ordinary loop, with all checks."},
     {each({'\0', '\xff', '\x1e'},
           [](char filling) {
               return Steps{
                   Asleep{}, EndIfRefused{}, Emit{8, 1000}, Asleep{},
                   InNextBuffer{.actions = {OverwriteAll{filling}}, .pages = NextPages::data}};
           })},
     {.cpus = 1}},
    {{"E21/lapped-in-part-while-it-finds-its-place", Level::erratum,
      "a partial lap during the search for new events",
      "Fill the new buffer with delivered events. At each of the first accesses to its metadata "
      "page in turn, emit an event over the oldest few.",
      "The consumer continues at tail_pos, still skips the events that it knows, and delivers "
      "nothing again."},
     {Limited{{InNextBuffer{.actions = {Emit{1, 8000}}, .last = 24, .before = filled_by(4000)}}}},
     {.cpus = 1}},
    {{"E21/new-over-the-first-that-it-scans", Level::erratum,
      "a new event in the place of the first old one",
      "Fill the new buffer with delivered events of 64 bytes. At each of the first accesses to it "
      "in turn, emit one of 64 bytes exactly over the oldest.",
      "The consumer discards the overwritten event, continues at tail_pos, and still skips the "
      "events that it knows."},
     {Limited{{InNextBuffer{
         .actions = {Emit{1, 64}}, .pages = NextPages::all, .last = 60, .before = filled_by(64)}}}},
     {.cpus = 1}},
    {{"5.1.8.3-5/clock-set-back-over-a-swap", Level::must,
      "a clock set back, and a batch, during a resize",
      "Resize, each time with a batch of four events in the new buffer. Set the clock back by an "
      "hour before the second and the third resize.",
      "The consumer finds new events by their sequence number, not by their time."},
     {each({0, 1, 1},
           [](std::uint64_t hours) {
               return Steps{Asleep{}, AtOnce{{Resize{}, set_clock_back(hours),
                                              OnEachCpu{{Batch{{100, 100, 100, 100}}}}}}};
           }),
      Asleep{}},
     {.before_start = {EmitEverywhere{3, 200}}}},
    {{"E21/lapped-over-a-swap", Level::erratum, "a lap of the new buffer",
      "Resize, and lap the new buffer before the consumer continues.",
      "The consumer delivers what survives in either buffer once, in order."},
     {Asleep{},
      Times{3, {AtOnce{{EmitEverywhere{2, 300}, Resize{}, OnEachCpu{{Lap{2500}}}}}, Asleep{}}}},
     {.before_start = {EmitEverywhere{4, 200}}}},
    {{"E19/swap-after-the-mmap", Level::erratum, "a buffer retired before its generation is read",
      "Resize every buffer just after one is mapped and before its generation can have been read. "
      "Nudge a consumer that sleeps on the retired buffer.",
      "The consumer attaches again and finds the current buffer, at once or at the nudge."},
     swap_after_the_mmap},
    {{"E19/swap-with-events-after-the-mmap", Level::erratum,
      "a buffer with events of its own retired before its generation is read",
      "Just after the next buffer is mapped, emit four events, and replace the buffer by one into "
      "which they do not fit.",
      "The consumer delivers the four events, and writes a G record for each of the two buffers."},
     swap_after_the_mmap_with_events},
    {{"E19/nudged", Level::erratum, "nudges of retired buffers",
      "Increment the generation of a retired buffer one to three times more.",
      "The consumer moves to the new buffer once and delivers nothing twice."},
     {Asleep{}, each_below(3,
                           [](std::uint64_t i) {
                               return Steps{AtOnce{{EmitEverywhere{}, Resize{}, NudgeRetired{i + 1},
                                                    EmitEverywhere{}}},
                                            Asleep{}};
                           })},
     {.before_start = {EmitEverywhere{2, 100}}}},
    {{"E24/swap-at-every-step", Level::erratum, "a resize at every step of a drain",
      "Before each access to CPU 0's metadata page in turn, emit an event, resize with shifted "
      "positions, and lap the new buffer.",
      kLoadsWritePosAgain},
     {Asleep{}, BeforeEachAccess{leave_in_the_old_buffer(1)}},
     {.nudging = false}},
    {{"E24/swap-at-every-step-of-an-empty-iteration", Level::erratum,
      "a resize at every step of an iteration without events",
      "Wake the consumer of CPU 0 without an event. Before each access to the metadata page in "
      "turn, emit five events, resize with shifted positions, and lap the new buffer.",
      kLoadsWritePosAgain},
     {Asleep{}, BeforeEachAccess{.actions = leave_in_the_old_buffer(5), .spurious_wakes = 1}},
     {.nudging = false}},
    {{"5.1.8.3-6/closes-retired-buffers", Level::should, "files and mappings of old buffers",
      "Resize twenty times, one after the other, with an event each.",
      "The consumer closes the fds and unmaps the mappings of old buffers."},
     closes_what_it_leaves},
};

// -- Several CPUs --

// The buffers shrink one CPU after the other (5.1.8.4). The consumer sees the first change. Before
// its attach is answered, each other CPU gets more than the next buffer holds, and is changed too.
void change_on_the_way(Stage& stage, std::uint32_t seen, std::uint64_t next_bytes) {
    constexpr std::uint64_t kUnread = 24;
    const SwapSpec next{next_bytes};
    bool is_done = false;
    const auto change_others = [&stage, &is_done, seen, next] {
        if (std::exchange(is_done, true)) return;
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
            if (cpu == seen) continue;
            emit_some(stage, cpu, kUnread, next.capacity_bytes / 8);
            stage.rings().swap(cpu, next);
        }
    };
    stage.hooks().set_on_attach([&](const AttachRequest&) { change_others(); });
    stage.rings().swap(seen, next);
    stage.waits().until_or_asleep([&is_done] { return is_done; }, seen);
    stage.hooks().set_on_attach(nullptr);
    change_others();  // no thread has attached: that CPU has ended
    stage.wait_asleep();
}

CaseOutcome changed_on_the_way_to_another(Stage& stage) {
    const std::uint64_t small = stage.default_setup().capacity_bytes;
    set_up_cpus(stage, 3, 4 * small);
    stage.start();
    for (std::uint32_t seen = 0; seen < stage.cpus(); ++seen) {
        // The consumer is proven to read these buffers, and not only to have them.
        stage.wait_asleep();
        emit_everywhere(stage, 1, 100);
        stage.wait_asleep();
        change_on_the_way(stage, seen, small);
        stage.resize(4 * small);
    }
    stage.wait_asleep();
    return stage.finish();
}

constexpr std::uint64_t kManyUnread = 6000;
const std::uint64_t kUnreadBytes = kLeastEventBytes + 10;
// The least ring that holds them in the form of the layout.
const std::uint64_t kUnreadRing = std::bit_ceil(kManyUnread * kUnreadBytes);
// And the largest that holds fewer than 1900 of them.
const std::uint64_t kNextRing = std::bit_floor(1900 * kUnreadBytes);

// Unread events on some CPUs. The next buffers hold a quarter of them.
Step leave_unread(const std::vector<std::uint32_t>& cpus) {
    return InOrder{{EmitEverywhere{}, Asleep{},
                    AtOnce{{each(cpus,
                                 [](std::uint32_t cpu) {
                                     return Steps{OnCpu{cpu, {Emit{kManyUnread, kUnreadBytes}}}};
                                 }),
                            Resize{kNextRing}}},
                    Asleep{}, Resize{kUnreadRing}}};
}

const Row kSeveralChangeRows[] = {
    {{"E10/changed-on-the-way-to-another", Level::erratum,
      "changes of the other CPUs' buffers before the attach",
      "Replace the buffer of one of three CPUs by a smaller one. Before the attach that follows, "
      "emit more on each of the others than its next buffer holds, and replace those as well.",
      "The consumer drains each old buffer to its frozen write_pos before it leaves it, whichever "
      "CPU's change caused the attach."},
     changed_on_the_way_to_another},
    {{"E10/thousands-unread-on-any-cpu", Level::erratum,
      "thousands of unread events on one CPU, then on two",
      "Emit 6000 events on the second of three CPUs, then on the first and the last. While they "
      "are unread, replace the buffers by some that hold a quarter of them.",
      "The consumer delivers all of them on each CPU, from the old buffers first."},
     {leave_unread({1}), leave_unread({0, 2}), Asleep{}},
     {.cpus = 3, .capacity = kUnreadRing}},
};

// -- What survives in the next buffer --

// A dropped event used the number after the last one of the old buffer.
const Row kGapOverSwapRows[] = {
    {{"5.1.8.3-5/gap-over-a-swap", Level::must, "a dropped event before a resize",
      "Drop events just before a resize, so that the sequence has a gap there.",
      "The consumer continues with the first greater sequence number, not with the next one."},
     {each_below(3,
                 [](std::uint64_t i) {
                     return Steps{Asleep{}, AtOnce{{OnEachCpu{{Drop{i + 1}}}, Resize{},
                                                    EmitEverywhere{2, 200}}}};
                 }),
      Asleep{}},
     {.before_start = {EmitEverywhere{3, 200}}}},
};

// The next buffer contains a few of the events; the others are only in the old one (E10).
const Row kThousandUnreadRows[] = {
    {{"E10/a-thousand-unread", Level::erratum, "a thousand unread events in the old buffer",
      "Emit 1000 events. While they are unread, replace the buffer by a buffer that holds few of "
      "them.",
      "The consumer delivers all of them, from the old buffer first."},
     {Asleep{}, Emit{1, 40}, Asleep{}, AtOnce{{Emit{1000, 400}, Resize{kSmallRegion}}}, Asleep{}},
     {.cpus = 1, .capacity = 8 * kSmallRegion}},
};

// After the shrink one event fills the new buffer to the last byte.
const Row kFullNextBufferRows[] = {
    {{"E20/fills-the-new-buffer", Level::erratum, "an event as large as the new buffer",
      "Shrink the buffer to exactly the size of an event that survives.",
      "The consumer delivers the event whole."},
     {Asleep{}, AtOnce{{Emit{1, usual()}, Resize{usual()}}}, Asleep{}, Emit{2, 100}, Asleep{}},
     {.cpus = 1, .capacity = usual(2)}},
};

}  // namespace

const std::vector<Case> kFirstResizeCases = cases_of(kFirstResizeRows);
const std::vector<Case> kResizeCases = cases_of(kResizeRows);
const std::vector<Case> kSeveralChangeCases = cases_of(kSeveralChangeRows);
const std::vector<Case> kGapOverSwapCases = cases_of(kGapOverSwapRows);
const std::vector<Case> kThousandUnreadCases = cases_of(kThousandUnreadRows);
const std::vector<Case> kFullNextBufferCases = cases_of(kFullNextBufferRows);

}  // namespace kmes::conformance
