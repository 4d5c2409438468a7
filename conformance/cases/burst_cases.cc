// SPDX-License-Identifier: MIT
//
// Several events at once (5.1.8.1): a burst that is overwritten whole or in part, and more events
// than 16 bits can count (5.1.9).
#include "conformance/cases/play.h"
#include "conformance/play/access_step.h"

namespace kmes::conformance {

namespace {

constexpr std::uint64_t kBurst = 8;
constexpr std::uint64_t kBurstEventBytes = 700;

// A ring that is full except for a burst, which comes while the consumer is stopped before its
// first access. `act` writes `passed` bytes more than the free room, so tail_pos moves that far
// into the burst.
AccessStep burst(Stage& stage, std::uint64_t passed) {
    AccessStep step;
    step.cpus = {0};
    step.wake = [&stage] { emit_some(stage, 0, kBurst, kBurstEventBytes); };
    step.act = [&stage, passed](const GuardHit&) {
        stage.rings().emit_bytes(0, capacity(stage, 0) - kBurst * kBurstEventBytes + passed);
    };
    return step;
}

CaseOutcome lapped_between_looks(Stage& stage) {
    stage.start();
    act_at_every_step(stage, burst(stage, kBurst * kBurstEventBytes));
    return stage.finish();
}

CaseOutcome lapped_in_part_between_looks(Stage& stage) {
    stage.start();
    act_at_every_step(stage, burst(stage, 3 * kBurstEventBytes));
    return stage.finish();
}

// The burst begins with a page, and is overwritten in part at an access to its data.
CaseOutcome burst_torn_in_part(Stage& stage) {
    stage.start();
    stage.wait_asleep();
    for (const std::uint64_t k : {1, 2, 9, 40, 120}) {
        fill_up_to(stage, 0, 0);
        stage.wait_asleep();
        AccessStep step = burst(stage, 3 * kBurstEventBytes);
        step.first_page = 1;
        step.pages = 2;
        act_at_step(stage, step, k);
    }
    return stage.finish();
}

// One event of four pages, and no more than that event is overwritten: tail_pos moves to its end.
CaseOutcome torn_by_one(Stage& stage) {
    constexpr std::uint64_t kEventBytes = 4 * kPageBytes - 64;
    stage.start();
    stage.wait_asleep();
    for (const std::uint64_t first_page : {1, 2, 4}) {
        fill_up_to(stage, 0, 0);
        stage.wait_asleep();
        AccessStep step;
        step.cpus = {0};
        step.first_page = first_page;
        step.wake = [&stage] { emit_some(stage, 0, 1, kEventBytes); };
        step.act = [&stage](const GuardHit&) { stage.rings().emit_bytes(0, capacity(stage, 0)); };
        act_at_step(stage, step, 1);
    }
    return stage.finish();
}

// Far more events are lost at once than 16 bits can count.
CaseOutcome gap_of_many(Stage& stage) {
    set_up_one_cpu(stage);
    emit_some(stage, 0, 3, 100);
    stage.start();
    for (const std::uint64_t lost : {300, 36'000, 66'000}) {
        stage.wait_asleep();
        stage.freeze();
        emit_some(stage, 0, lost + capacity(stage, 0) / kLeastEventBytes, kLeastEventBytes);
        stage.thaw();
    }
    // In the middle of a burst: the numbers on both sides of the gap go through it together.
    AccessStep step = burst(stage, 0);
    step.act = [&stage](const GuardHit&) {
        emit_some(stage, 0, 66'000 + capacity(stage, 0) / kLeastEventBytes, kLeastEventBytes);
    };
    for (const std::uint64_t k : {3, 5, 9, 14}) act_at_step(stage, step, k);
    stage.wait_asleep();
    return stage.finish();
}

// More events on one CPU than 16 bits can count, nearly all of them there at once.
CaseOutcome seventy_thousand(Stage& stage) {
    constexpr std::uint64_t kCapacity = std::uint64_t{4} << 20;
    constexpr std::uint64_t kAtOnce = 66'000;
    constexpr std::uint64_t kBytes = 48;
    set_up_one_cpu(stage, kCapacity);
    emit_some(stage, 0, kAtOnce, kBytes);
    stage.start();
    // The powers of two: what counts in 8, 12 or 16 bits comes back to 0.
    for (const std::uint64_t events : {1, 255, 256, 1024, 4096, 65'536}) {
        stage.wait_asleep();
        stage.freeze();
        emit_some(stage, 0, events, kBytes);
        stage.thaw();
    }
    stage.wait_asleep();
    if (stage.has_ended(0)) return stage.finish();  // refused: the judge says whether rightly
    // A consumer that has seen so many still makes every check.
    constexpr std::uint64_t kTornPages = 8;
    fill_up_to(stage, 0, 0);
    stage.wait_asleep();
    overwrite_under_read(
        stage, kTornPages / 2, 1, [&stage] { emit_some(stage, 0, 1, kTornPages * kPageBytes); },
        [&stage] { emit_headers(stage, 0, 8, kCapacity / 8); });
    act_at_every_access(stage, 0, [&stage] { emit_some(stage, 0, 1, 70); });
    return stage.finish();
}

}  // namespace

void add_burst_cases(std::vector<Case>& cases) {
    cases.push_back(
        {"5.1.8.1-2/lapped-between-two-looks", Level::must, "5.1.8.1-2",
         "a lap during a read of several events",
         "Emit eight events at once. Before each access to the metadata page in turn, lap the "
         "ring, the eight events included.",
         "The consumer continues at tail_pos and uses nothing that it read ahead or kept.",
         lapped_between_looks});
    cases.push_back({"5.1.8.1-2/lapped-in-part-between-two-looks", Level::must, "5.1.8.1-2",
                     "a part of several events overwritten",
                     "Emit eight events at once. Before each access to the metadata page in turn, "
                     "overwrite the first three of them.",
                     "The consumer continues at tail_pos and delivers the other five.",
                     lapped_in_part_between_looks});
    cases.push_back(
        {"5.1.8.1-5/burst-torn-in-part", Level::must, "5.1.8.1-5",
         "a part of several events overwritten during the copy",
         "Emit eight events at once. At an access to their data, overwrite the first three.",
         "The consumer sees in its load of tail_pos after the copy that the first event was "
         "overwritten, however much it copies at once.",
         burst_torn_in_part});
    cases.push_back({"5.1.8.1-5/torn-by-one-event", Level::must, "5.1.8.1-5",
                     "exactly the current event overwritten",
                     "Stop the consumer in the middle of an event of four pages. Overwrite exactly "
                     "that event, so that tail_pos is its end.",
                     "The consumer discards the event, because read_pos < tail_pos.", torn_by_one});
    cases.push_back(
        {"5.1.9/gap-of-many-events", Level::must, "5.1.9", "a lap of very many small events",
         "Overwrite 300, 36,000 and 66,000 events of 30 bytes at once. Overwrite 66,000 once more "
         "while the consumer reads a burst.",
         "The consumer continues at tail_pos. Its L records count the lost events.", gap_of_many});
    cases.push_back({"5.1.8.1-6/seventy-thousand-events", Level::must, "5.1.8.1-6",
                     "more events of one CPU than 16 bits can count",
                     "Emit 66,000 small events before the attach. Later emit 1, 255, 256, 1024, "
                     "4096 and 65,536 events at once. Then overwrite one event during the copy, "
                     "and emit an event before each access in turn.",
                     "The consumer delivers each event once, in order. It makes each check, "
                     "however much it has delivered.",
                     seventy_thousand});
}

}  // namespace kmes::conformance
