// SPDX-License-Identifier: MIT
//
// Going to sleep and being woken (5.1.8.2, E1 to E3, E17): an event, a swap, a wake that is none,
// at every step on the way.
#include <cerrno>
#include <map>
#include <memory>

#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

CaseOutcome sleeps_and_wakes(Stage& stage) {
    stage.start();
    stage.wait_asleep();
    for (int round = 0; round < 15; ++round) {
        const auto cpu = static_cast<std::uint32_t>(round) % stage.cpus();
        emit_some(stage, cpu, 1, 100);
        stage.wait_asleep(cpu);
    }
    emit_everywhere(stage, 1, 100);
    stage.wait_asleep();
    return stage.finish();
}

// need_wake has to be 1 while the consumer sleeps without a limit.
CaseOutcome asks_to_be_woken(Stage& stage) {
    stage.start();
    for (int round = 0; round < 5; ++round) {
        stage.wait_asleep();
        const BufferIndex buffer = stage.rings().history().present_buffer(0);
        if (stage.sleeps_without_limit(0) && stage.rings().need_wake(buffer) == 0) {
            stage.blame("5.1.8.2-1",
                        "CPU 0: the consumer sleeps with need_wake 0; expected 1. Evidence: the "
                        "producer skips the wake for the next event");
            break;
        }
        emit_everywhere(stage, 1, 100);
    }
    return stage.finish();
}

CaseOutcome shared_futex(Stage& stage) {
    stage.start();
    stage.wait_asleep();
    emit_everywhere(stage, 1, 64);
    stage.wait_asleep();
    for (const FutexWait& wait : stage.waits()) {
        for (const FutexWord& word : wait.words) {
            if (!word.is_private) continue;
            stage.blame(
                "E17",
                "the consumer waits on futex_counter with FUTEX_PRIVATE_FLAG; expected a shared "
                "futex, which the producer in another process or in the kernel can wake");
            return stage.finish();
        }
    }
    return stage.finish();
}

CaseOutcome spurious_wakes(Stage& stage) {
    stage.start();
    for (int round = 0; round < 8; ++round) {
        stage.wait_asleep();
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
            wake_for_nothing(stage, cpu);
        }
        stage.wait_asleep();
        emit_everywhere(stage, 1, 80);
    }
    stage.wait_asleep();
    return stage.finish();
}

// The kernel restarts or interrupts the wait. The consumer must check again, and not exit.
CaseOutcome interrupted_waits(Stage& stage) {
    stage.start();
    for (int round = 0; round < 10; ++round) {
        stage.wait_asleep();
        stage.freeze();
        if (round % 2 == 1) emit_everywhere(stage, 1, 80);
        stage.thaw();
    }
    stage.wait_asleep();
    return stage.finish();
}

// The same with a result: every wake returns EINTR, as after a signal.
CaseOutcome waits_that_return_eintr(Stage& stage) {
    // An event between the last check and the kernel's wait ends the wait with EAGAIN, which shows
    // nothing here. A few iterations pass until the suite wakes a thread that slept with a time
    // limit, or for several CPUs.
    constexpr int kRoundsAtMost = 60;
    stage.set_wake_result(-EINTR);
    stage.start();
    for (int round = 0; round < 6 || (stage.wake_results_told() < 3 && round < kRoundsAtMost);
         ++round) {
        stage.wait_asleep();
        if (round >= 6) stage.let_run(1);
        emit_everywhere(stage, 1, 80);
    }
    stage.wait_asleep();
    return stage.finish();
}

// An event between the last check of the consumer and the kernel's: at the entry of the futex wait.
CaseOutcome event_at_the_wait(Stage& stage) {
    int left = 6;
    stage.set_on_wait([&](const FutexWait&, std::uint32_t cpu) {
        if (left <= 0) return;
        --left;
        emit_some(stage, cpu, 1, 90);
    });
    stage.start();
    stage.wait_until([&left] { return left == 0; }, "six waits on futex_counter");
    stage.set_on_wait(nullptr);
    stage.wait_asleep();
    return stage.finish();
}

CaseOutcome event_at_every_step(Stage& stage) {
    stage.start();
    stage.wait_asleep();
    act_at_every_access(stage, 0, [&stage] { emit_some(stage, 0, 1, kLeastEventBytes); });
    return stage.finish();
}

// Each CPU has one first sleep: the event comes at the first step on the way there on the first
// CPU, at the second on the second, and so on.
CaseOutcome event_at_every_first_step(Stage& stage) {
    constexpr std::uint32_t kCpus = 24;
    set_up_cpus(stage, kCpus);
    const auto left = std::make_shared<std::map<MappingId, std::uint32_t>>();
    stage.set_on_mapped([&stage, left](const Mapped& mapped) {
        for (std::uint32_t cpu = 0; cpu < kCpus; ++cpu) {
            if (!stage.is_present(mapped, cpu)) continue;
            left->emplace(mapped.mapping.id, cpu + 1);
            stage.guard(cpu, 0, 1, [&stage, left](const GuardHit& hit) {
                const auto its = left->find(hit.place.mapping);
                if (its == left->end() || its->second == 0 || --its->second > 0)
                    return Stage::AtGuard::step;
                const auto buffer = stage.buffer_at(hit.place);
                if (buffer) emit_some(stage, stage.rings().history().buffer(*buffer).cpu, 1, 70);
                return Stage::AtGuard::step;
            });
        }
    });
    stage.start();
    stage.wait_asleep();
    stage.set_on_mapped(nullptr);
    stage.release_guards();
    return stage.finish();
}

CaseOutcome batch_at_every_step(Stage& stage) {
    stage.start();
    stage.wait_asleep();
    act_at_every_access(stage, 0, [&stage] {
        std::vector<EventSpec> specs;
        for (int i = 0; i < 3; ++i) specs.push_back(stage.rings().make(70));
        stage.rings().batch(0, specs);
    });
    return stage.finish();
}

CaseOutcome spurious_wake_at_every_step(Stage& stage) {
    stage.start();
    stage.wait_asleep();
    act_at_every_access(stage, 0, [&stage] { stage.rings().spurious_wake(0); });
    return stage.finish();
}

// No consumer attaches in the middle of a swap in the cases below. Every consumer sleeps on its
// current buffer when its iteration begins. A consumer that sleeps on a retired one made the
// mistake itself, so it gets no nudge.
CaseOutcome swap_at_every_step(Stage& stage) {
    stage.start();
    stage.set_nudging(false);
    stage.wait_asleep();
    act_at_every_access(stage, 0, [&stage] {
        stage.resize(stage.capacity_bytes());
        emit_some(stage, 0, 1, 70);
    });
    return stage.finish();
}

CaseOutcome swap_without_event_at_every_step(Stage& stage) {
    stage.start();
    stage.set_nudging(false);
    stage.wait_asleep();
    act_at_every_access(stage, 0, [&stage] { stage.resize(stage.capacity_bytes()); });
    emit_everywhere(stage, 1, 70);
    stage.wait_asleep();
    return stage.finish();
}

CaseOutcome asleep_through_a_swap(Stage& stage) {
    stage.start();
    stage.set_nudging(false);
    for (int round = 0; round < 4; ++round) {
        stage.wait_asleep();
        stage.resize(stage.capacity_bytes());
        stage.wait_asleep();
        emit_everywhere(stage, round % 2, 80);
    }
    stage.wait_asleep();
    return stage.finish();
}

CaseOutcome load_order(Stage&) {
    stop_unsupported(
        "x86-64 does not reorder loads, so a missing fence before the second load of tail_pos "
        "cannot fail on this machine");
}

// An earlier consumer was killed in its sleep.
CaseOutcome flag_left_set(Stage& stage) {
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu)
        stage.rings().put_need_wake(stage.rings().history().present_buffer(cpu), 1,
                                    "need_wake is 1, as an earlier consumer left it");
    emit_everywhere(stage, 2, 100);
    stage.start();
    stage.wait_asleep();
    emit_everywhere(stage, 1, 100);
    stage.wait_asleep();
    return stage.finish();
}

}  // namespace

void add_sleep_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add("5.1.8.2-5/sleeps-and-wakes", Level::must, "5.1.8.2-5", "sleep by futex, and wake",
        "Emit single events, each to a sleeping consumer.",
        "The consumer sleeps in a futex wait on futex_counter, is woken by the event, and delivers "
        "it.",
        sleeps_and_wakes);
    add("5.1.8.2-1/asks-to-be-woken", Level::must, "5.1.8.2-1", "need_wake during a sleep",
        "Check need_wake whenever the consumer of CPU 0 sleeps without a time limit.",
        "The consumer has set need_wake to 1 by then.", asks_to_be_woken);
    add("E17/shared-futex", Level::erratum, "E17", "waits on a shared futex",
        "Check the operation of every futex wait on futex_counter.",
        "The consumer uses none with FUTEX_PRIVATE_FLAG.", shared_futex);
    add("5.1.8.2-6/spurious-wakes", Level::must, "5.1.8.2-6", "spurious wakes",
        "Call FUTEX_WAKE without an event for every CPU, between events.",
        "The consumer invents nothing and sleeps again.", spurious_wakes);
    add("5.1.8.2-5/interrupted-waits", Level::must, "5.1.8.2-5", "interrupted waits",
        "Stop and continue the sleeping threads, every second time with an event in between.",
        "The consumer sleeps on, or delivers the event.", interrupted_waits);
    add("5.1.8.2-5/waits-that-return-eintr", Level::must, "5.1.8.2-5", "EINTR from futex_wait",
        "Return EINTR from futex_wait at every wake, as if a signal had come.",
        "The consumer checks for events again, as after any wake.", waits_that_return_eintr);
    add("E2/event-at-the-futex-wait", Level::erratum, "E2",
        "an event at the entry of the futex wait",
        "Publish an event after the last check, when the thread enters its futex wait.",
        "The consumer waits with a value of futex_counter that is older than the event, so the "
        "wait returns at once.",
        event_at_the_wait);
    add("E2/event-at-every-step", Level::erratum, "E2", "an event at every step before a sleep",
        "Wake the consumer of CPU 0 with an event. Before each access to the metadata page in "
        "turn, until it sleeps, publish one more event.",
        "The consumer reads futex_counter before its last load of write_pos, so it never sleeps on "
        "an unread event.",
        event_at_every_step);
    add("E2/event-at-every-step-of-a-first-sleep", Level::erratum, "E2",
        "an event at every step before the first sleep",
        "Serve 24 CPUs. Publish an event on the k-th of them before the k-th access to its "
        "metadata page after the mmap.",
        "The consumer never sleeps on an unread event, the first time included.",
        event_at_every_first_step);
    add("5.1.7/batch-at-every-step", Level::must, "5.1.7", "a batch at every step before a sleep",
        "Wake the consumer of CPU 0. Before each access to the metadata page in turn, until it "
        "sleeps, publish a batch of three events.",
        "The consumer never sleeps on an unread event.", batch_at_every_step);
    add("5.1.8.2/spurious-wake-at-every-step", Level::must, "5.1.8.2",
        "a spurious wake at every step",
        "Wake the consumer of CPU 0. Before each access to the metadata page in turn, until it "
        "sleeps, call FUTEX_WAKE without an event.",
        "The consumer sleeps again.", spurious_wake_at_every_step);
    add("E3/swap-at-every-step", Level::erratum, "E3", "a resize at every step before a sleep",
        "Wake the consumer of CPU 0. Before each access to the metadata page in turn, until it "
        "sleeps, resize and emit an event in the new buffer.",
        "The consumer loads generation again after it sets need_wake, so it never sleeps on the "
        "retired buffer.",
        swap_at_every_step);
    add("E3/swap-without-an-event-at-every-step", Level::erratum, "E3",
        "a resize without an event at every step before a sleep",
        "Wake the consumer of CPU 0. Before each access to the metadata page in turn, until it "
        "sleeps, resize without an event.",
        "The consumer moves to the new buffer and sleeps there.", swap_without_event_at_every_step);
    add("E3/asleep-through-a-swap", Level::erratum, "E3", "a swap during a sleep",
        "Resize every buffer while the consumer sleeps. Then emit events.",
        "The consumer moves to the new buffer at the wake of the swap.", asleep_through_a_swap);
    add("E4/data-before-second-look", Level::erratum, "E4",
        "a fence before the second load of tail_pos",
        "Perform the loads of the data after the second load of tail_pos.",
        "The consumer keeps the order by an acquire fence between the two.", load_order);
}

void add_left_flag_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add("5.1.6.3/flag-left-set", Level::must, "5.1.6.3", "need_wake set from the beginning",
        "Set need_wake to 1 in every buffer before the attach, as a consumer that was killed in "
        "its sleep leaves it.",
        "The consumer ignores the old value and delivers every event.", flag_left_set);
}

}  // namespace kmes::conformance
