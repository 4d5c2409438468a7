// SPDX-License-Identifier: MIT
//
// The drain loop without overwriting: order, sequence numbers, gaps, batches (5.1.8.1, 5.1.7,
// 5.1.9).
#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

CaseOutcome drain(Stage& stage) {
    emit_everywhere(stage, 20, 100);
    stage.start();
    stage.wait_delivered();
    for (std::uint64_t round = 1; round <= 10; ++round) {
        emit_everywhere(stage, round, 30 + 37 * round);
        stage.wait_delivered();
    }
    return stage.finish();
}

CaseOutcome begins_at_tail(Stage& stage) {
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) lap(stage, cpu, 3000 + 111 * cpu);
    stage.start();
    stage.wait_delivered();
    emit_everywhere(stage, 3, 100);
    stage.wait_delivered();
    return stage.finish();
}

CaseOutcome full_ring(Stage& stage) {
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
        // Exactly capacity bytes between tail_pos and write_pos.
        const std::uint64_t quarter = capacity(stage, cpu) / 4;
        emit_some(stage, cpu, 4, quarter);
    }
    stage.start();
    stage.wait_delivered();
    return stage.finish();
}

CaseOutcome one_cpu_busy(Stage& stage) {
    stage.start();
    stage.wait_asleep();
    const std::uint32_t busy = stage.cpus() - 1;
    for (int round = 0; round < 20; ++round) {
        emit_some(stage, busy, 5, 150);
        stage.wait_delivered(busy);
    }
    return stage.finish();
}

CaseOutcome dropped(Stage& stage) {
    emit_some(stage, 0, 2, 100);
    stage.rings().drop(0);
    emit_some(stage, 0, 2, 100);
    stage.start();
    stage.wait_delivered();
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
        emit_some(stage, cpu, 1, 100);
        for (std::uint32_t count = 0; count <= cpu; ++count) stage.rings().drop(cpu);
        emit_some(stage, cpu, 3, 100);
        stage.rings().drop(cpu);
    }
    stage.wait_delivered();
    emit_everywhere(stage, 1, 60);
    stage.wait_delivered();
    // What follows the last gap is the end event.
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) stage.rings().drop(cpu);
    return stage.finish();
}

// The first event that the consumer sees is not the first that was numbered: no loss is known.
CaseOutcome gap_before_the_first(Stage& stage) {
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
        stage.rings().drop(cpu);
        stage.rings().drop(cpu);
        emit_some(stage, cpu, 2, 100);
    }
    stage.start();
    stage.wait_delivered();
    return stage.finish();
}

std::vector<EventSpec> batch_of(Stage& stage, std::size_t count, std::uint64_t event_bytes) {
    std::vector<EventSpec> specs;
    for (std::size_t i = 0; i < count; ++i) specs.push_back(stage.rings().make(event_bytes + i));
    return specs;
}

CaseOutcome batches(Stage& stage) {
    stage.start();
    stage.wait_asleep();
    for (const std::size_t count : {1, 2, 64, 256}) {
        for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu)
            stage.rings().batch(cpu, batch_of(stage, count, 40));
        stage.wait_asleep();
    }
    std::vector<EventSpec> with_a_drop = batch_of(stage, 5, 100);
    with_a_drop.insert(with_a_drop.begin() + 2, stage.rings().make(stage.capacity_bytes() / 2 + 1));
    stage.rings().batch(0, with_a_drop);
    stage.wait_asleep();
    // They have one timestamp, and here all else but the sequence number.
    stage.rings().batch(0, std::vector<EventSpec>(5, stage.rings().make(90)));
    stage.wait_asleep();
    return stage.finish();
}

CaseOutcome batch_larger_than_room(Stage& stage) {
    emit_everywhere(stage, 10, 200);
    stage.start();
    stage.wait_asleep();
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
        const std::uint64_t eighth = capacity(stage, cpu) / 8;
        stage.rings().batch(cpu, batch_of(stage, 21, eighth));
    }
    stage.wait_asleep();
    return stage.finish();
}

}  // namespace

void add_drain_cases(std::vector<Case>& cases) {
    cases.push_back({"5.1.8.1-6/drain", Level::must, "5.1.8.1-6", "drain in order",
                     "Emit events before the attach. Then emit 1 to 10 events of growing sizes on "
                     "every CPU, ten times.",
                     kEachOnce, drain});
    cases.push_back({"E11/begins-at-tail-pos", Level::must, "E11", "a start at tail_pos",
                     "Let the buffers wrap before the consumer attaches, so that the oldest event "
                     "is in the middle of the data region.",
                     "The consumer begins at tail_pos and delivers everything from there.",
                     begins_at_tail});
    cases.push_back({"5.1.8.1-1/full-ring", Level::must, "5.1.8.1-1", "a full ring",
                     "Emit exactly capacity bytes between tail_pos and write_pos.",
                     "The consumer delivers every event of a full ring, which is not an empty one.",
                     full_ring});
    cases.push_back({"5.1.8/one-busy-cpu", Level::must, "5.1.8", "one busy CPU among idle ones",
                     "Emit events on the last CPU only.",
                     "The consumer delivers these events while the other CPUs are idle.",
                     one_cpu_busy});
    cases.push_back(
        {"5.1.9/gap-of-dropped-events", Level::must, "5.1.9", "gaps from dropped events",
         "Drop events of over 50 % of the capacity. Each uses a sequence number (5.1.7 step 5).",
         "The consumer delivers the events after a gap. An L record, where there is one, has the "
         "exact count of missing numbers.",
         dropped});
    cases.push_back({"5.1.9/gap-before-the-first", Level::must, "5.1.9",
                     "a gap before the first event",
                     "Drop the first two events of each CPU before the consumer attaches.",
                     "The consumer counts no loss before the first event that it delivers.",
                     gap_before_the_first});
    cases.push_back({"5.1.7/batches", Level::must, "5.1.7", "batches",
                     "Publish batches of 1 to 256 events at once, one of them with a dropped "
                     "event, each while the consumer sleeps.",
                     "The consumer delivers every event of a batch after one wake.", batches});
    cases.push_back({"E8/batch-larger-than-the-room", Level::erratum, "E8",
                     "a batch larger than the buffer",
                     "Emit a batch of more than twice the capacity. The producer publishes parts "
                     "of it, because tail_pos may not reach write_pos.",
                     "The consumer delivers what is not overwritten, and nothing torn or early.",
                     batch_larger_than_room});
}

}  // namespace kmes::conformance
