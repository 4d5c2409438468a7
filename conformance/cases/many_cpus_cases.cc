// SPDX-License-Identifier: MIT
//
// Many CPUs, and the last of them (5.1.1): the rules of sleep and of a new buffer hold for each.
#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

CaseOutcome event_on_the_last_cpu(Stage& stage) {
    stage.start();
    stage.wait_asleep();
    const std::uint32_t last = stage.cpus() - 1;
    act_at_every_access(stage, last, [&stage, last] { emit_some(stage, last, 1, 70); });
    return stage.finish();
}

CaseOutcome swap_on_the_last_cpu(Stage& stage) {
    stage.start();
    stage.set_nudging(false);
    stage.wait_asleep();
    const std::uint32_t last = stage.cpus() - 1;
    act_at_every_access(stage, last, [&stage, last] {
        stage.resize(stage.capacity_bytes());
        emit_some(stage, last, 1, 70);
    });
    return stage.finish();
}

// Beside tables of 8, 16 and 32, and words of 32 bits.
CaseOutcome some_of_sixty_four(Stage& stage) {
    const Stage::ShortenedWaits shortened_waits(stage);
    set_up_cpus(stage, 64);
    stage.start();
    stage.wait_asleep();
    for (const std::uint32_t cpu : {16u, 32u, 63u}) {
        emit_some(stage, cpu, 1, 100);
        stage.wait_delivered(cpu);
    }
    // And all of them at once.
    stage.wait_asleep();
    stage.freeze();
    emit_everywhere(stage, 1, 100);
    stage.thaw();
    stage.wait_asleep();
    return stage.finish();
}

// The consumer of CPU 33, among 36, is woken by its own events; what one thread for all CPUs looks
// at between two sleeps is long, and has a tail that is easily cut off. More CPUs do not fit: a
// consumer with a limit of 96 files has two descriptors for each of them.
constexpr std::uint32_t kOneOfMany = 33;

CaseOutcome at_every_step_of_many(Stage& stage, const std::function<void()>& act) {
    set_up_cpus(stage, 36);
    stage.start();
    stage.set_nudging(false);
    stage.wait_asleep();
    act_at_every_access(stage, kOneOfMany, act);
    return stage.finish();
}

CaseOutcome event_of_many(Stage& stage) {
    return at_every_step_of_many(stage, [&stage] { emit_some(stage, kOneOfMany, 1, 70); });
}

CaseOutcome swap_of_many(Stage& stage) {
    return at_every_step_of_many(stage, [&stage] {
        stage.rings().swap(kOneOfMany, SwapSpec{stage.capacity_bytes()});
        emit_some(stage, kOneOfMany, 1, 70);
    });
}

// Not more: a thread for each CPU, and an fd of each CPU for each thread, are 400 descriptors.
CaseOutcome change_of_twenty(Stage& stage) {
    const Stage::ShortenedWaits shortened_waits(stage);
    set_up_cpus(stage, 20);
    stage.start();
    for (int round = 0; round < 2; ++round) {
        stage.wait_asleep();
        stage.resize(stage.capacity_bytes());
        stage.wait_asleep();
        for (const std::uint32_t cpu : {0u, 8u, 15u, 16u, 19u}) {
            emit_some(stage, cpu, 1, 100);
            stage.wait_delivered(cpu);
        }
    }
    stage.wait_asleep();
    return stage.finish();
}

}  // namespace

void add_many_cpu_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add("5.1.8.2-2/event-at-every-step-on-the-last-cpu", Level::must, "5.1.8.2-2",
        "an event at every step on the last CPU",
        "Emit an event on the last CPU before each access to its metadata page in turn.", kDelivers,
        event_on_the_last_cpu);
    add("E3/swap-at-every-step-on-the-last-cpu", Level::erratum, "E3",
        "a swap at every step on the last CPU",
        "Replace the buffers before each access to the last CPU's metadata page in turn.", kFollows,
        swap_on_the_last_cpu);
    add("5.1.1/some-of-sixty-four", Level::must, "5.1.1", "events on some of 64 sleeping CPUs",
        "Let 64 CPUs sleep. Emit single events on some of them, then one on each at the same time.",
        "The consumer delivers each event when it is published.", some_of_sixty_four);
    add("5.1.8.2-2/event-at-every-step-of-thirty-six", Level::must, "5.1.8.2-2",
        "an event at every step on one of 36 CPUs",
        "Emit an event on CPU 33 before each access to its metadata page in turn.", kDelivers,
        event_of_many);
    add("E3/swap-at-every-step-of-thirty-six", Level::erratum, "E3",
        "a swap at every step on one of 36 CPUs",
        "Replace the buffer of CPU 33 before each access to its metadata page in turn.", kFollows,
        swap_of_many);
    add("5.1.8.3/change-of-twenty", Level::must, "5.1.8.3", "new buffers on 20 sleeping CPUs",
        "Replace all buffers of 20 CPUs while all of them sleep. Then emit single events on some "
        "of them.",
        kFollows, change_of_twenty);
}

}  // namespace kmes::conformance
