// SPDX-License-Identifier: MIT
//
// Several CPUs (5.1.1, 5.1.8.3). A thread of the consumer is held in the middle of an event, or of
// a change of buffers. Meanwhile another thread does the same for another CPU. Or something happens
// to one CPU while the consumer reads another. A consumer with one thread continues after a short
// time, and the case proves nothing.
#include <vector>

#include "conformance/cases/play.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

// Texts of several cases.
constexpr std::string_view kWholeOnEach =
    "The consumer delivers each CPU's events whole, and shares nothing between the CPUs.";

constexpr std::uint64_t kPointsAtMost = 24;

const Setup kTwoHeld{.cpus = 2, .shortened_waits = true};

// The place at which CPU 0's thread is held: its n-th access to a page of the metadata, or of the
// data of an event.
struct Point {
    std::uint64_t page;
    std::uint64_t access;
};

// The beginning of the data, the third page of the event, and the first ten accesses to the
// metadata page.
const std::vector<Point> kPointsOfAnEvent{{1, 1}, {1, 2}, {3, 1}, {0, 1}, {0, 2}, {0, 3}, {0, 4},
                                          {0, 5}, {0, 6}, {0, 7}, {0, 8}, {0, 9}, {0, 10}};

Steps held_in_events(std::uint64_t event_bytes, const std::vector<Point>& points,
                     const Steps& afterwards = {}) {
    return {each(points, [&](const Point& point) {
        return Steps{OnEachCpu{{EmitTo{}}}, Asleep{}, OnEachCpu{{EndIfRefused{}}},
                     HoldAt{.page = point.page,
                            .access = point.access,
                            .wake = {Emit{1, event_bytes}},
                            .meanwhile = {OnCpu{1, {Emit{2, event_bytes}}}},
                            .afterwards = afterwards}};
    })};
}

// For a type too long to have a buffer for each CPU: holds the thread while it reads the type. The
// type crosses a page or two that contain nothing else of the event.
Step held_in_type(std::uint64_t type_bytes, const Point& point) {
    constexpr std::uint64_t kBeforePage = 150;
    const EmitTyped event{kHeaderBytesBeforeType + type_bytes, type_bytes};
    return InOrder{{EmitTo{current() - kPageBytes + kBeforePage}, Asleep{},
                    OnEachCpu{{EndIfRefused{}}},
                    HoldAt{.page = point.page,
                           .access = point.access,
                           .wake = {event},
                           .meanwhile = {OnCpu{1, {event}}}}}};
}

// Enough CPUs that only some of them share a resource.
constexpr std::uint32_t kManyCpus = 18;
Step held_beside_many(const Point& point) {
    constexpr std::uint64_t kEventBytes = 3 * kPageBytes - 100;
    Steps others;
    for (std::uint32_t cpu = 1; cpu < kManyCpus; ++cpu)
        others.push_back(OnCpu{cpu, {Emit{2, kEventBytes}}});
    return InOrder{{EmitTo{}, Asleep{}, EndIfRefused{},
                    HoldAt{.page = point.page,
                           .access = point.access,
                           .wake = {Emit{1, kEventBytes}},
                           .meanwhile = others,
                           .at_most_ms = 300}}};
}

std::uint32_t counter_of(const Stage& stage, std::uint32_t cpu) {
    return stage.rings().counters().of(stage.rings().history().current_buffer(cpu));
}

// Emits events for a sleeping consumer until the counter of `cpu` is at least `wanted`.
void raise_counter(Stage& stage, std::uint32_t cpu, std::uint32_t wanted) {
    constexpr int kEventsAtMost = 16;
    for (int i = 0; i < kEventsAtMost; ++i) {
        if (static_cast<std::int32_t>(wanted - counter_of(stage, cpu)) <= 0) return;
        emit_some(stage, cpu, 1, 70);
        stage.wait_asleep();
    }
}

// CPU 1's next wake gives it the counter that CPU 0 has after its next two events.
void align_counters(Stage& stage) {
    raise_counter(stage, 1, counter_of(stage, 0) + 1);
    raise_counter(stage, 0, counter_of(stage, 1) - 1);
}

// While CPU 0's thread is held on the way to sleep, CPU 1's thread wakes and sleeps again, with the
// counter that CPU 0 will have after its next event. A consumer that waits on CPU 0 with that value
// sleeps on the event.
const HoldAt kHeldOnTheWayToSleep{
    .wake = {Emit{}},
    .meanwhile = {OnCpu{1, {Emit{1, 70}}}},
    .afterwards = {Emit{1, 70}},
    .place = AccessPlace::after,
    .last = kPointsAtMost,
    .before = {Asleep{}, OnEachCpu{{EndIfRefused{}}}, align_counters}};

// From the usual capacity to twice that, and back.
void resize_in_turn(Stage& stage) {
    const std::uint64_t usual = stage.default_setup().capacity_bytes;
    stage.resize(stage.capacity_bytes() == usual ? 2 * usual : usual);
}

// Holds CPU 0's thread at each access to its new buffer, while CPU 1 moves to another one as well.
// CPU 1's buffer is replaced by `together` with CPU 0's, or by `meanwhile` during the hold. On a
// busy machine CPU 1's thread has often finished the former before the hold.
HoldAt held_in_a_change(const Steps& together, const Steps& meanwhile) {
    return {.wake = {AtOnce{{Emit{3, 200}, OnCpu{1, {Emit{9, 200}}}, InOrder{together}}}},
            .meanwhile = meanwhile,
            .place = AccessPlace::in_next_buffer,
            .last = kPointsAtMost,
            .before = {EmitEverywhere{}, Asleep{}}};
}

const Steps kChangesOne{Swap{}, Emit{2, 300}};

// CPU 0's thread is held while CPU 1 goes through two changes, each to another capacity. The way
// back to the first capacity follows each time.
const Steps kBack{EmitEverywhere{3, 1000}, Asleep{}, Resize{usual()}, Asleep{}};
const HoldAt kHeldOverTwoChanges{
    .wake = {Emit{2, 200}},
    .meanwhile = {Resize{usual(2)}, EmitEverywhere{2, 300}, Hold{}, Resize{usual(8)},
                  EmitEverywhere{2, 300}},
    .last = 4,
    .before = {Asleep{}, OnEachCpu{{EndIfRefused{}}}, InTurn{{Steps{}, kBack, kBack, kBack}}}};

// -- An action on one CPU while the consumer reads another --

Steps acted_elsewhere(const Steps& actions) {
    const auto walk = [&actions](std::uint32_t woken, std::uint32_t other) {
        return BeforeAccessTo{.wake = {OnCpu{woken, {Emit{}}}},
                              .actions = {OnCpu{other, actions}},
                              .cpus = {0, 1, 2}};
    };
    return {walk(0, 2), walk(2, 0), walk(1, 2)};
}

const Row kSeveralCpuRows[] = {
    {{"5.1.1/two-cpus-in-the-middle", Level::must, "two events of two CPUs at the same time",
      "Hold the thread that reads an event of CPU 0 at an access to its data, and at each of "
      "the first ten accesses to the metadata in turn. Emit events of CPU 1 meanwhile.",
      kWholeOnEach},
     held_in_events(3 * kPageBytes - 100, kPointsOfAnEvent),
     kTwoHeld},
    {{"5.1.1/two-cpus-in-the-middle-of-a-lap", Level::must,
      "a lap of one CPU while another is far ahead",
      "Play 5.1.1/two-cpus-in-the-middle, with positions of CPU 1 from 2^40 on. Overwrite CPU 0's "
      "buffer before its thread continues.",
      "The consumer continues at CPU 0's own tail_pos, and shares nothing between the CPUs."},
     held_in_events(3 * kPageBytes - 100, kPointsOfAnEvent, {Lap{}}),
     {.cpus = 2, .position = 0, .position_step = std::uint64_t{1} << 40, .shortened_waits = true}},
    {{"5.1.1/two-cpus-in-the-middle-of-large-events", Level::must,
      "two large events of two CPUs at the same time",
      "Hold the thread that reads an event of 1.5 MiB of CPU 0 at its first page, a middle page "
      "and the last. Emit such events of CPU 1 meanwhile.",
      kWholeOnEach},
     held_in_events(kMebibyte + kMebibyte / 2, {{1, 1}, {200, 1}, {383, 1}}),
     {.cpus = 2, .capacity = 4 * kMebibyte, .shortened_waits = true}},
    {{"5.1.1/two-cpus-in-the-middle-of-long-types", Level::must,
      "two long types of two CPUs at the same time",
      "Hold the thread that reads an event of CPU 0 in the middle of its type of 300, 5000 or "
      "60,000 bytes. Meanwhile emit an event with a type "
      "of the same length on CPU 1.",
      kWholeOnEach},
     {held_in_type(300, {2, 1}), held_in_type(300, {2, 20}), held_in_type(5000, {2, 1}),
      held_in_type(5000, {3, 1}), held_in_type(5000, {2, 100}), held_in_type(60'000, {3, 1})},
     {.cpus = 2, .capacity = 256 * kKibibyte}},
    {{"5.1.1/many-cpus-in-the-middle", Level::must, "events of eighteen CPUs at the same time",
      "Hold the thread that reads an event of CPU 0 at an access to its data, and to the "
      "metadata. Emit events of seventeen other CPUs meanwhile.",
      kWholeOnEach},
     {held_beside_many({1, 1}), held_beside_many({3, 1}), held_beside_many({0, 3}),
      held_beside_many({0, 4})},
     {.cpus = kManyCpus, .shortened_waits = true}},
    {{"5.1.1/two-cpus-go-to-sleep", Level::must, "two CPUs that go to sleep at the same time",
      "Hold the thread of CPU 0 after each of its accesses before it sleeps. Wake CPU 1 with an "
      "event, let it sleep again with another counter, and emit an event of CPU 0.",
      "The consumer sleeps with each CPU's own counter, and shares nothing between the CPUs."},
     {Limited{{kHeldOnTheWayToSleep}}},
     {.cpus = 2}},
    {{"5.1.8.3/two-cpus-change-buffers", Level::must, "new buffers of two CPUs at the same time",
      "Hold the thread that moves to CPU 0's new buffer at each of its accesses to it in turn. "
      "Let CPU 1 move to its own meanwhile.",
      "The consumer continues each CPU where it was, and shares nothing between the CPUs."},
     {held_in_a_change({resize_in_turn, EmitEverywhere{2, 300}}, {}),
      held_in_a_change(kChangesOne, {OnCpu{1, kChangesOne}}), EmitEverywhere{}, Asleep{}},
     // The CPUs have different generations.
     {.cpus = 2,
      .before_start = {Emit{5, 200}, OnCpu{1, {Emit{2, 200}, Swap{}}}},
      .shortened_waits = true}},
    {{"5.1.8.3/one-cpu-is-two-changes-behind", Level::must,
      "two changes of one CPU before one of another",
      "Hold the thread of CPU 0 at each of its first accesses to the metadata page in turn. "
      "Replace all buffers twice by larger ones, and let CPU 1 move to its own meanwhile.",
      "The consumer continues each CPU where it was, with the values of its own buffer."},
     {kHeldOverTwoChanges, InOrder{kBack}},
     // The position is at a different offset in each of the three capacities.
     {.cpus = 2, .position = usual(7), .shortened_waits = true}},
};

const Row kOtherCpuRows[] = {
    {{"5.1.1/event-elsewhere-at-every-step", Level::erratum,
      "an event on another CPU at every step",
      "Wake the consumer with an event of one CPU. Before each access to the metadata of any CPU "
      "in turn, emit an event of another CPU.",
      "The consumer checks every CPU that it sleeps for once more before it sleeps (E2)."},
     acted_elsewhere({Emit{1, 70}}),
     {.cpus = 3, .nudging = false}},
    {{"5.1.1/events-everywhere-at-every-step", Level::erratum,
      "the same event on all CPUs at every step",
      "Give all CPUs the same positions. Wake the consumer with an event on each. Before each "
      "access to the metadata of any CPU in turn, emit an event of the same size on each.",
      "The consumer compares the positions of each CPU with that CPU's own before it sleeps (E2)."},
     {BeforeAccessTo{
         .wake = {EmitEverywhere{1, 70}}, .actions = {EmitEverywhere{1, 70}}, .cpus = {}}},
     {.position = 0}},
    {{"E3/swap-elsewhere-at-every-step", Level::erratum, "a resize of another CPU at every step",
      "Wake the consumer with an event of one CPU. Before each access to the metadata of any CPU "
      "in turn, replace the buffer of another CPU and emit an event in the new one.",
      "The consumer checks the generation of every CPU that it sleeps for once more before it "
      "sleeps."},
     acted_elsewhere({Swap{}, Emit{1, 70}}),
     {.cpus = 3, .nudging = false}},
};

}  // namespace

const std::vector<Case> kSeveralCpuCases = cases_of(kSeveralCpuRows);
const std::vector<Case> kOtherCpuCases = cases_of(kOtherCpuRows);

}  // namespace kmes::conformance
