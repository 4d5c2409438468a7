// SPDX-License-Identifier: MIT
//
// Several CPUs (5.1.1, 5.1.8.3). A thread of the consumer is held in the middle of an event, or of
// a change of buffers, while another thread does the same for another CPU. Something happens to one
// CPU while the consumer reads another. A consumer with one thread continues after a short while,
// and nothing is shown.
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "conformance/cases/play.h"
#include "conformance/oracle/layout.h"
#include "conformance/play/access_step.h"

namespace kmes::conformance {

namespace {

// Texts of several cases.
constexpr std::string_view kWholeOnEach =
    "The consumer delivers each CPU's events whole, and shares nothing between the CPUs.";

constexpr std::uint32_t kCpus = 2;
constexpr int kPointsAtMost = 24;

// Holds the thread that is stopped at `hit` until the other CPU is drained and asleep.
void hold_for_the_other(Stage& stage, const GuardHit& hit) {
    stage.hold_while(hit.tid, [&stage] {
        return !stage.has_ended(1) && !(is_delivered(stage, 1) && stage.asleep(1));
    });
}

// CPU 0's thread is held at its n-th access to some pages, those of an event among them.
struct Point {
    std::uint64_t first_page;
    std::uint64_t pages;
    int access;
};

// What comes of CPU 0 while it is held.
enum class Meanwhile { nothing, a_lap };

CaseOutcome in_the_middle_of_an_event(Stage& stage, std::uint64_t event_bytes,
                                      const std::vector<Point>& points,
                                      Meanwhile meanwhile = Meanwhile::nothing) {
    const Stage::ShortenedWaits shortened_waits(stage);
    stage.start();
    for (const Point& point : points) {
        for (std::uint32_t cpu = 0; cpu < kCpus; ++cpu) fill_up_to(stage, cpu, 0);
        stage.wait_asleep();
        if (stage.has_ended(0) || stage.has_ended(1)) break;
        int left = point.access;
        bool held = false;
        stage.guard(0, point.first_page, point.pages, [&](const GuardHit& hit) {
            if (held || --left > 0) return Stage::AtGuard::step;
            held = true;
            emit_some(stage, 1, 2, event_bytes);
            hold_for_the_other(stage, hit);
            if (meanwhile == Meanwhile::a_lap) lap(stage, 0);
            return Stage::AtGuard::release;
        });
        emit_some(stage, 0, 1, event_bytes);
        stage.wait_asleep();
        stage.release_guards();
    }
    return stage.finish();
}

// The metadata page at each access, and the data at its begin and at the third page of the event.
std::vector<Point> points_of_an_event() {
    std::vector<Point> points{{1, 1, 1}, {1, 1, 2}, {3, 1, 1}};
    for (int access = 1; access <= 10; ++access) points.push_back({0, 1, access});
    return points;
}

CaseOutcome in_the_middle_of_events(Stage& stage) {
    set_up_cpus(stage, kCpus);
    return in_the_middle_of_an_event(stage, 3 * kPageBytes - 100, points_of_an_event());
}

// The other CPU's positions are far ahead: next to those, no tail_pos of this one has moved.
CaseOutcome in_the_middle_of_a_lap(Stage& stage) {
    RingsSetup setup = stage.default_setup();
    setup.cpus = kCpus;
    setup.start_positions = {0, std::uint64_t{1} << 40};
    stage.set_up(setup);
    return in_the_middle_of_an_event(stage, 3 * kPageBytes - 100, points_of_an_event(),
                                     Meanwhile::a_lap);
}

// What is too rare to have room for each CPU.
CaseOutcome in_the_middle_of_large_events(Stage& stage) {
    constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
    RingsSetup setup = stage.default_setup();
    setup.cpus = kCpus;
    setup.capacity_bytes = 4 * kMebibyte;
    stage.set_up(setup);
    return in_the_middle_of_an_event(stage, kMebibyte + kMebibyte / 2,
                                     {{1, 1, 1}, {200, 1, 1}, {383, 1, 1}});
}

// What is too long to have room for each CPU: held while it reads the type. That crosses a page or
// two, on which there is nothing else of the event.
CaseOutcome in_the_middle_of_types(Stage& stage) {
    struct Round {
        std::size_t type_bytes;
        Point point;
    };
    constexpr std::uint64_t kBeforePage = 150;
    constexpr Round kRounds[] = {{300, {2, 1, 1}},  {300, {2, 1, 20}},   {5000, {2, 1, 1}},
                                 {5000, {3, 1, 1}}, {5000, {2, 1, 100}}, {60'000, {3, 1, 1}}};
    set_up_cpus(stage, kCpus, std::uint64_t{1} << 18);
    stage.start();
    const auto emit = [&stage](std::uint32_t cpu, std::size_t type_bytes) {
        const std::string type(type_bytes, cpu == 0 ? 'a' : 'b');
        stage.rings().emit(cpu, stage.rings().make(kHeaderBytesBeforeType + type.size(), type));
    };
    for (const Round& round : kRounds) {
        fill_up_to(stage, 0, capacity(stage, 0) - kPageBytes + kBeforePage);
        stage.wait_asleep();
        if (stage.has_ended(0) || stage.has_ended(1)) break;
        int left = round.point.access;
        bool held = false;
        stage.guard(0, round.point.first_page, round.point.pages, [&](const GuardHit& hit) {
            if (held || --left > 0) return Stage::AtGuard::step;
            held = true;
            emit(1, round.type_bytes);
            hold_for_the_other(stage, hit);
            return Stage::AtGuard::release;
        });
        emit(0, round.type_bytes);
        stage.wait_asleep();
        stage.release_guards();
    }
    return stage.finish();
}

// The same beside many others at once, for what only some of the CPUs share.
CaseOutcome in_the_middle_beside_many(Stage& stage) {
    const Stage::ShortenedWaits shortened_waits(stage);
    constexpr std::uint32_t kMany = 18;
    constexpr std::uint64_t kEventBytes = 3 * kPageBytes - 100;
    constexpr std::chrono::milliseconds kForThemAll{300};
    set_up_cpus(stage, kMany);
    stage.start();
    const auto others_are_busy = [&stage] {
        for (std::uint32_t cpu = 1; cpu < kMany; ++cpu) {
            if (!stage.has_ended(cpu) && !is_delivered(stage, cpu)) return true;
        }
        return false;
    };
    for (const Point& point : {Point{1, 1, 1}, Point{3, 1, 1}, Point{0, 1, 3}, Point{0, 1, 4}}) {
        fill_up_to(stage, 0, 0);
        stage.wait_asleep();
        if (stage.has_ended(0)) break;
        int left = point.access;
        bool held = false;
        stage.guard(0, point.first_page, point.pages, [&](const GuardHit& hit) {
            if (held || --left > 0) return Stage::AtGuard::step;
            held = true;
            for (std::uint32_t cpu = 1; cpu < kMany; ++cpu) emit_some(stage, cpu, 2, kEventBytes);
            stage.hold_while(hit.tid, others_are_busy, kForThemAll);
            return Stage::AtGuard::release;
        });
        emit_some(stage, 0, 1, kEventBytes);
        stage.wait_asleep();
        stage.release_guards();
    }
    return stage.finish();
}

std::uint32_t counter_of(const Stage& stage, std::uint32_t cpu) {
    return stage.rings().counter(stage.rings().history().present_buffer(cpu));
}

// Events for a consumer that sleeps, until `cpu` has the counter that is wanted, or a later one.
void raise_counter(Stage& stage, std::uint32_t cpu, std::uint32_t wanted) {
    constexpr int kEventsAtMost = 16;
    for (int i = 0; i < kEventsAtMost; ++i) {
        if (static_cast<std::int32_t>(wanted - counter_of(stage, cpu)) <= 0) return;
        emit_some(stage, cpu, 1, 70);
        stage.wait_asleep();
    }
}

// Holds CPU 0's thread after its n-th access before a sleep. CPU 1's thread wakes and sleeps again
// meanwhile, with the counter that CPU 0 will have after its next event. A consumer that waits on
// CPU 0 with that value sleeps on the event. False: there was no n-th access.
bool hold_on_the_way_to_sleep(Stage& stage, int access) {
    bool held = false;
    int left = access;
    stage.wait_asleep();
    if (stage.has_ended(0) || stage.has_ended(1)) return false;
    raise_counter(stage, 1, counter_of(stage, 0) + 1);
    raise_counter(stage, 0, counter_of(stage, 1) - 1);
    stage.guard(
        0, 0, 1, [](const GuardHit&) { return Stage::AtGuard::step; },
        [&](const GuardHit& hit, const GuardStep&) {
            if (held || --left > 0) return;
            held = true;
            emit_some(stage, 1, 1, 70);
            hold_for_the_other(stage, hit);
            emit_some(stage, 0, 1, 70);
        });
    emit_some(stage, 0, 1, 100);
    stage.wait_asleep();
    stage.release_guards();
    return held;
}

CaseOutcome two_go_to_sleep(Stage& stage) {
    constexpr int kAccessesAtMost = 24;
    set_up_cpus(stage, kCpus);
    stage.start();
    WalkLimit limit(stage);
    for (int access = 1; access <= kAccessesAtMost && !limit.is_over(); ++access) {
        if (!hold_on_the_way_to_sleep(stage, access)) break;
    }
    return stage.finish();
}

// When CPU 1's buffer is replaced: with CPU 0's, by one of another size, or while CPU 0's thread is
// held. On a busy machine CPU 1's thread has often done with the former by then.
enum class Change { together, meanwhile };

void change_both(Stage& stage) {
    const std::uint64_t usual = stage.default_setup().capacity_bytes;
    stage.resize(stage.capacity_bytes() == usual ? 2 * usual : usual);
    emit_everywhere(stage, 2, 300);
}

void change_one(Stage& stage, std::uint32_t cpu) {
    stage.rings().swap(cpu, SwapSpec{stage.capacity_bytes()});
    emit_some(stage, cpu, 2, 300);
}

// CPU 0's thread is held at its n-th access to the buffer that it has just mapped, while CPU 1
// changes its buffer, too. False: there was no n-th access.
bool hold_in_a_change(Stage& stage, Change change, int access) {
    bool held = false;
    int left = access;
    stage.wait_asleep();
    stage.freeze();
    emit_some(stage, 0, 3, 200);
    emit_some(stage, 1, 9, 200);
    if (change == Change::together)
        change_both(stage);
    else
        change_one(stage, 0);
    stage.set_on_mapped([&](const Mapped& mapped) {
        if (!stage.is_present(mapped, 0) || held) return;
        stage.guard(0, 0, 1, [&](const GuardHit& hit) {
            if (held || --left > 0) return Stage::AtGuard::step;
            held = true;
            if (change == Change::meanwhile) change_one(stage, 1);
            hold_for_the_other(stage, hit);
            return Stage::AtGuard::release;
        });
    });
    stage.thaw();
    stage.wait_asleep();
    stage.set_on_mapped(nullptr);
    stage.release_guards();
    emit_everywhere(stage, 1, 100);
    return held;
}

CaseOutcome in_the_middle_of_a_change(Stage& stage) {
    const Stage::ShortenedWaits shortened_waits(stage);
    set_up_cpus(stage, kCpus);
    emit_some(stage, 0, 5, 200);
    emit_some(stage, 1, 2, 200);
    // From here on the CPUs have different generations.
    stage.rings().swap(1, SwapSpec{stage.capacity_bytes()});
    stage.start();
    for (const Change change : {Change::together, Change::meanwhile}) {
        for (int access = 1; access <= kPointsAtMost; ++access) {
            if (!hold_in_a_change(stage, change, access)) break;
        }
    }
    stage.wait_asleep();
    return stage.finish();
}

// CPU 0's thread is held at its n-th access to the metadata page while CPU 1 goes through two
// changes, each to another capacity. False: there was no n-th access.
bool hold_over_two_changes(Stage& stage, int access) {
    const std::uint64_t first = stage.default_setup().capacity_bytes;
    bool held = false;
    int left = access;
    stage.wait_asleep();
    if (stage.has_ended(0) || stage.has_ended(1)) return false;
    stage.guard(0, 0, 1, [&](const GuardHit& hit) {
        if (held || --left > 0) return Stage::AtGuard::step;
        held = true;
        for (const std::uint64_t capacity : {2 * first, 8 * first}) {
            stage.resize(capacity);
            emit_everywhere(stage, 2, 300);
            hold_for_the_other(stage, hit);
        }
        return Stage::AtGuard::release;
    });
    emit_some(stage, 0, 2, 200);
    stage.wait_asleep();
    stage.release_guards();
    emit_everywhere(stage, 3, 1000);
    stage.wait_asleep();
    stage.resize(first);
    return held;
}

CaseOutcome one_is_two_behind(Stage& stage) {
    const Stage::ShortenedWaits shortened_waits(stage);
    constexpr int kPoints = 4;
    RingsSetup setup = stage.default_setup();
    setup.cpus = kCpus;
    // Where each of the three capacities leads to another place.
    setup.start_positions.assign(kCpus, 7 * setup.capacity_bytes);
    stage.set_up(setup);
    stage.start();
    for (int access = 1; access <= kPoints; ++access) {
        if (!hold_over_two_changes(stage, access)) break;
    }
    stage.wait_asleep();
    return stage.finish();
}

// -- An action on one CPU while the consumer reads another --

CaseOutcome at_every_step_elsewhere(Stage& stage,
                                    const std::function<void(std::uint32_t other)>& act) {
    set_up_cpus(stage, 3);
    stage.start();
    stage.set_nudging(false);  // as in E3/swap-at-every-step
    const std::array<std::pair<std::uint32_t, std::uint32_t>, 3> pairs{{{0, 2}, {2, 0}, {1, 2}}};
    for (const auto& [woken, other] : pairs) {
        AccessStep step;
        step.cpus = {0, 1, 2};
        step.wake = [&stage, cpu = woken] { emit_some(stage, cpu, 1, 100); };
        step.act = [&act, cpu = other](const GuardHit&) { act(cpu); };
        act_at_every_step(stage, step);
    }
    return stage.finish();
}

CaseOutcome event_elsewhere(Stage& stage) {
    return at_every_step_elsewhere(
        stage, [&stage](std::uint32_t other) { emit_some(stage, other, 1, 70); });
}

CaseOutcome swap_elsewhere(Stage& stage) {
    return at_every_step_elsewhere(stage, [&stage](std::uint32_t other) {
        stage.rings().swap(other, SwapSpec{stage.capacity_bytes()});
        emit_some(stage, other, 1, 70);
    });
}

// All positions are the same, and stay so.
CaseOutcome events_everywhere(Stage& stage) {
    RingsSetup setup = stage.default_setup();
    setup.start_positions.assign(setup.cpus, 0);
    stage.set_up(setup);
    stage.start();
    AccessStep step;
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) step.cpus.push_back(cpu);
    step.wake = [&stage] { emit_everywhere(stage, 1, 70); };
    step.act = [&stage](const GuardHit&) { emit_everywhere(stage, 1, 70); };
    act_at_every_step(stage, step);
    return stage.finish();
}

}  // namespace

void add_several_cpu_cases(std::vector<Case>& cases) {
    cases.push_back({"5.1.1/two-cpus-in-the-middle", Level::must, "5.1.1",
                     "two events of two CPUs at the same time",
                     "Hold the thread that reads an event of CPU 0 at an access to its data, and "
                     "at each access to the metadata in turn. Emit events of CPU 1 meanwhile.",
                     kWholeOnEach, in_the_middle_of_events});
    cases.push_back(
        {"5.1.1/two-cpus-in-the-middle-of-a-lap", Level::must, "5.1.1",
         "a lap of one CPU while another is far ahead",
         "Play 5.1.1/two-cpus-in-the-middle, with positions of CPU 1 from 2^40 on. Overwrite CPU "
         "0's buffer before its thread continues.",
         "The consumer continues at CPU 0's own tail_pos, and shares nothing between the CPUs.",
         in_the_middle_of_a_lap});
    cases.push_back({"5.1.1/two-cpus-in-the-middle-of-large-events", Level::must, "5.1.1",
                     "two large events of two CPUs at the same time",
                     "Hold the thread that reads an event of 1.5 MiB of CPU 0 at its first page, a "
                     "middle page and the last. Emit such events of CPU 1 meanwhile.",
                     kWholeOnEach, in_the_middle_of_large_events});
    cases.push_back({"5.1.1/two-cpus-in-the-middle-of-long-types", Level::must, "5.1.1",
                     "two long types of two CPUs at the same time",
                     "Hold the thread that reads an event of CPU 0 in the middle of its type of "
                     "300, 5000 or 60,000 bytes. Emit one with a type as long on CPU 1 meanwhile.",
                     kWholeOnEach, in_the_middle_of_types});
    cases.push_back({"5.1.1/many-cpus-in-the-middle", Level::must, "5.1.1",
                     "events of eighteen CPUs at the same time",
                     "Hold the thread that reads an event of CPU 0 at an access to its data, and "
                     "to the metadata. Emit events of seventeen other CPUs meanwhile.",
                     kWholeOnEach, in_the_middle_beside_many});
    cases.push_back(
        {"5.1.1/two-cpus-go-to-sleep", Level::must, "5.1.1",
         "two CPUs that go to sleep at the same time",
         "Hold the thread of CPU 0 after each of its accesses before it sleeps. Wake CPU 1 with an "
         "event, let it sleep again with another counter, and emit an event of CPU 0.",
         "The consumer sleeps with each CPU's own counter, and shares nothing between the CPUs.",
         two_go_to_sleep});
    cases.push_back(
        {"5.1.8.3/two-cpus-change-buffers", Level::must, "5.1.8.3",
         "new buffers of two CPUs at the same time",
         "Hold the thread that moves to CPU 0's new buffer at each of its accesses to it in turn. "
         "Let CPU 1 move to its own meanwhile.",
         "The consumer continues each CPU where it was, and shares nothing between the CPUs.",
         in_the_middle_of_a_change});
    cases.push_back(
        {"5.1.8.3/one-cpu-is-two-changes-behind", Level::must, "5.1.8.3",
         "two changes of one CPU before one of another",
         "Hold the thread of CPU 0 at each of its first accesses to the metadata page in turn. "
         "Replace all buffers twice by larger ones, and let CPU 1 move to its own meanwhile.",
         "The consumer continues each CPU where it was, with the values of its own buffer.",
         one_is_two_behind});
}

void add_other_cpu_cases(std::vector<Case>& cases) {
    cases.push_back(
        {"5.1.1/event-elsewhere-at-every-step", Level::erratum, "5.1.1",
         "an event on another CPU at every step",
         "Wake the consumer with an event of one CPU. Before each access to the metadata of any "
         "CPU in turn, emit an event of another CPU.",
         "The consumer checks every CPU that it sleeps for once more before it sleeps (E2).",
         event_elsewhere});
    cases.push_back(
        {"5.1.1/events-everywhere-at-every-step", Level::erratum, "5.1.1",
         "the same event on all CPUs at every step",
         "Give all CPUs the same positions. Wake the consumer with an event on each. Before each "
         "access to the metadata of any CPU in turn, emit an event of the same size on each.",
         "The consumer compares the positions of each CPU with that CPU's own before it sleeps "
         "(E2).",
         events_everywhere});
    cases.push_back(
        {"E3/swap-elsewhere-at-every-step", Level::erratum, "E3",
         "a resize of another CPU at every step",
         "Wake the consumer with an event of one CPU. Before each access to the metadata of any "
         "CPU in turn, replace the buffer of another CPU and emit an event in the new one.",
         "The consumer checks the generation of every CPU that it sleeps for once more before it "
         "sleeps.",
         swap_elsewhere});
}

}  // namespace kmes::conformance
