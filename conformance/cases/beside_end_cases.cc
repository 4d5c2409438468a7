// SPDX-License-Identifier: MIT
//
// Some CPUs have ended, and the others go on: an end event ends one CPU only (contract 4), for
// good, and whoever has fewer of them left sleeps by the same rules.
#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

constexpr std::uint32_t kCpus = 3;

void set_up(Stage& stage) {
    RingsSetup setup = stage.default_setup();
    setup.cpus = kCpus;
    stage.set_up(setup);
    stage.start();
    stage.wait_asleep();
}

void end(Stage& stage, std::uint32_t cpu) {
    stage.rings().emit(cpu, stage.rings().make_end());
    stage.wait_delivered(cpu);
    stage.wait_asleep();
}

// `check` with two CPUs left, and with one: that is the one to be looked at.
CaseOutcome with_fewer_and_fewer(Stage& stage,
                                 const std::function<void(std::uint32_t cpu)>& check) {
    set_up(stage);
    for (std::uint32_t ended = 0; ended + 1 < kCpus; ++ended) {
        end(stage, ended);
        check(kCpus - 1);
    }
    return stage.finish();
}

CaseOutcome event_at_every_step(Stage& stage) {
    return with_fewer_and_fewer(stage, [&stage](std::uint32_t cpu) {
        act_at_every_access(stage, cpu, [&stage, cpu] { emit_some(stage, cpu, 1, 70); });
    });
}

// As in E3/swap-at-every-step.
CaseOutcome swap_at_every_step(Stage& stage) {
    stage.set_nudging(false);
    return with_fewer_and_fewer(stage, [&stage](std::uint32_t cpu) {
        act_at_every_access(stage, cpu, [&stage, cpu] {
            stage.rings().swap(cpu, SwapSpec{stage.capacity_bytes()});
            emit_some(stage, cpu, 1, 70);
        });
    });
}

CaseOutcome ended_through_changes(Stage& stage) {
    constexpr int kChanges = 3;
    set_up(stage);
    for (std::uint32_t ended = 0; ended + 1 < kCpus; ++ended) {
        end(stage, ended);
        for (int i = 0; i < kChanges; ++i) {
            stage.resize(i == 0 ? 2 * stage.capacity_bytes() : stage.capacity_bytes());
            emit_everywhere(stage, 2, 100);
            stage.wait_asleep();
        }
    }
    return stage.finish();
}

}  // namespace

void add_beside_end_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add("contract-4/ended-through-changes", Level::must, "contract-4",
        "an ended CPU stays ended when buffers change",
        "One of three CPUs after the other has its end event; behind each, all buffers are "
        "replaced "
        "three times, and events come on every CPU.",
        "Nothing more is consumed of a CPU that has ended, and it exits when all have.",
        ended_through_changes);
    add("E2/event-at-every-step-beside-ended-cpus", Level::erratum, "E2",
        "an event at every step to sleep, when others have ended",
        "As in E2/event-at-every-step, with two CPUs left of three, and with one.",
        "No event is slept on, however many CPUs are left.", event_at_every_step);
    add("E3/swap-at-every-step-beside-ended-cpus", Level::erratum, "E3",
        "a resize at every step to sleep, when others have ended",
        "As in E3/swap-at-every-step, with two CPUs left of three, and with one.",
        "It does not sleep on the old buffer, however many CPUs are left.", swap_at_every_step);
}

}  // namespace kmes::conformance
