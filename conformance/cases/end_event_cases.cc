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
        "an ended CPU during changes of buffers",
        "Emit the end event on two of three CPUs, one after the other. After each, replace all "
        "buffers three times and emit events on every CPU.",
        "The consumer reads nothing more of a CPU that has ended, and exits when all have.",
        ended_through_changes);
    add("E2/event-at-every-step-beside-ended-cpus", Level::erratum, "E2",
        "an event at every step before a sleep, with ended CPUs",
        "Play E2/event-at-every-step with two CPUs left of three, and with one.",
        "The consumer never sleeps on an unread event, however many CPUs are left.",
        event_at_every_step);
    add("E3/swap-at-every-step-beside-ended-cpus", Level::erratum, "E3",
        "a resize at every step before a sleep, with ended CPUs",
        "Play E3/swap-at-every-step with two CPUs left of three, and with one.",
        "The consumer never sleeps on the old buffer, however many CPUs are left.",
        swap_at_every_step);
}

void add_end_event_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add("contract-4/other-ends", Level::must, "contract-4", "end events of other shapes",
        "Emit end events with a payload, with a longer header, and with other origins.",
        "The consumer ends the CPU of each of them.", other_ends);
}

}  // namespace kmes::conformance
