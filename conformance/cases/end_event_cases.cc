// SPDX-License-Identifier: MIT
//
// The end event (contract 4). Its type alone ends a CPU, for good, and no other CPU. A consumer
// with fewer CPUs left sleeps by the same rules.
#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

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
    return with_fewer_and_fewer(stage, [&stage](std::uint32_t) {
        for (const std::uint64_t factor : {2u, 1u, 1u}) {
            stage.resize(factor * stage.capacity_bytes());
            emit_everywhere(stage, 2, 100);
            stage.wait_asleep();
        }
    });
}

// Its type alone makes the end.
CaseOutcome other_ends(Stage& stage) {
    const std::string type(kEndEventType);
    const std::uint64_t least = kHeaderBytesBeforeType + type.size();
    stage.start();
    stage.wait_asleep();
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
        EventSpec end = cpu % 2 == 0 ? stage.rings().make(least + 50, type)
                                     : stage.rings().make(least + 16, type, 16);
        end.origin = static_cast<std::uint8_t>(1 + cpu % 3);
        stage.rings().emit(cpu, std::move(end));
    }
    stage.wait_delivered();
    return stage.finish();
}

}  // namespace

void add_ended_cpu_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add("contract-4/ended-through-changes", Level::must, "contract-4",
        "an ended CPU stays ended when buffers change",
        "One of three CPUs after the other has its end event; behind each, all buffers "
        "are replaced three times, and events come on every CPU.",
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

void add_end_event_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add("contract-4/other-ends", Level::must, "contract-4", "end events of other shapes",
        "End events with a payload, with a longer header, and of other origins.",
        "Each ends its CPU.", other_ends);
}

}  // namespace kmes::conformance
