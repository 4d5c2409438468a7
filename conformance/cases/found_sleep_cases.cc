// SPDX-License-Identifier: MIT
//
// What consumers were found to do wrong in rare places: on the way back to sleep from a spurious
// wake, on CPUs that are not the first, with events and buffers of unusual size.
#include <cerrno>

#include "conformance/cases/many_files.h"
#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

CaseOutcome event_after_nothing(Stage& stage, std::int64_t told) {
    set_up_one_cpu(stage);
    stage.set_wake_result(told);
    stage.start();
    stage.wait_asleep();
    act_at_every_access_after_nothing(stage, 0, [&stage] { emit_some(stage, 0, 1, 70); });
    return stage.finish();
}

// A consumer that adapts to spurious wakes has adapted by then.
constexpr int kWakes = 20;

CaseOutcome event_after_many(Stage& stage, std::int64_t told) {
    set_up_one_cpu(stage);
    stage.set_wake_result(told);
    stage.start();
    stage.wait_asleep();
    act_at_every_access_after_nothing(stage, 0, [&stage] { emit_some(stage, 0, 1, 70); }, kWakes);
    return stage.finish();
}

CaseOutcome swap_after_many(Stage& stage) {
    set_up_one_cpu(stage);
    stage.start();
    stage.set_nudging(false);
    stage.wait_asleep();
    act_at_every_access_after_nothing(
        stage, 0,
        [&stage] {
            stage.resize(stage.capacity_bytes());
            emit_some(stage, 0, 1, 70);
        },
        kWakes);
    return stage.finish();
}

CaseOutcome swap_after_nothing(Stage& stage, std::int64_t told) {
    set_up_one_cpu(stage);
    stage.set_wake_result(told);
    stage.start();
    stage.set_nudging(false);
    stage.wait_asleep();
    act_at_every_access_after_nothing(stage, 0, [&stage] {
        stage.resize(stage.capacity_bytes());
        emit_some(stage, 0, 1, 70);
    });
    return stage.finish();
}

CaseOutcome swap_before_any_event(Stage& stage) {
    set_up_one_cpu(stage);
    stage.start();
    stage.set_nudging(false);
    stage.wait_asleep();
    act_at_every_access_after_nothing(stage, 0, [&stage] { stage.resize(stage.capacity_bytes()); });
    emit_some(stage, 0, 1, 70);
    stage.wait_asleep();
    return stage.finish();
}

// The next buffer holds a few of them; the others are in the old one alone (E10).
CaseOutcome a_thousand_unread(Stage& stage) {
    constexpr std::uint64_t kCapacity = 65536;
    set_up_one_cpu(stage, kCapacity);
    stage.start();
    stage.wait_asleep();
    emit_some(stage, 0, 1, 40);
    stage.wait_asleep();
    stage.freeze();
    emit_some(stage, 0, 1000, 40);
    stage.resize(kCapacity / 8);
    stage.thaw();
    stage.wait_asleep();
    return stage.finish();
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
    const Stage::Hurry hurry(stage);
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
// at between two sleeps is long, and has a tail that is easily cut off. Not more CPUs: an attach in
// one that has a limit of 96 files takes an fd of each, twice.
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
    const Stage::Hurry hurry(stage);
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

// By then counters of a byte have gone round, and tables that were large enough are full.
constexpr int kThreeHundred = 300;

CaseOutcome event_after_three_hundred_sleeps(Stage& stage) {
    set_up_one_cpu(stage);
    stage.start();
    for (int i = 0; i < kThreeHundred && !stage.has_ended(0); ++i) {
        stage.wait_asleep();
        emit_some(stage, 0, 1, 40);
    }
    act_at_every_access(stage, 0, [&stage] { emit_some(stage, 0, 1, 70); });
    return stage.finish();
}

CaseOutcome three_hundred_changes(Stage& stage) {
    constexpr rlim_t kFilesOfABuffer = 4;
    set_up_one_cpu(stage);
    stage.start();
    stage.wait_asleep();
    const ManyFiles files(kFilesOfABuffer * kThreeHundred);
    for (int i = 0; i < kThreeHundred && !stage.has_ended(0); ++i) {
        stage.resize(stage.capacity_bytes());
        emit_some(stage, 0, 1, 40);
        stage.wait_asleep();
    }
    return stage.finish();
}

// The kernel may emit what no call takes (MaxEventSize is the calls' own limit).
CaseOutcome five_mebibytes(Stage& stage) {
    constexpr std::uint64_t kMebibyte = 1 << 20;
    set_up_one_cpu(stage, 16 * kMebibyte);
    stage.start();
    stage.wait_asleep();
    emit_some(stage, 0, 1, 5 * kMebibyte);
    stage.wait_asleep();
    stage.rings().emit(0, stage.rings().make(300'000, "wide-header", 200'000));
    stage.wait_asleep();
    return stage.finish();
}

CaseOutcome one_event_of(Stage& stage, std::uint64_t mebibytes, std::uint64_t capacity_mebibytes) {
    constexpr std::uint64_t kMebibyte = 1 << 20;
    set_up_one_cpu(stage, capacity_mebibytes * kMebibyte);
    stage.start();
    stage.wait_asleep();
    emit_some(stage, 0, 1, mebibytes * kMebibyte);
    stage.wait_asleep();
    return stage.finish();
}

// After the shrink one event is all that the new buffer holds, to the last byte.
CaseOutcome fills_the_new_buffer(Stage& stage) {
    const std::uint64_t small = stage.default_setup().capacity_bytes;
    set_up_one_cpu(stage, 2 * small);
    stage.start();
    stage.wait_asleep();
    stage.freeze();
    emit_some(stage, 0, 1, small);
    stage.resize(small);
    stage.thaw();
    stage.wait_asleep();
    emit_some(stage, 0, 2, 100);
    stage.wait_asleep();
    return stage.finish();
}

// Nothing survives that could move a reader: its old position lies beyond all of the new buffer.
CaseOutcome empty_and_at_zero(Stage& stage) {
    RingsSetup setup = stage.default_setup();
    setup.start_positions.assign(setup.cpus, 1'000'000'000);
    stage.set_up(setup);
    stage.start();
    stage.wait_asleep();
    stage.resize(stage.capacity_bytes(), PositionRule::tail_at, 0);
    stage.wait_asleep();
    emit_everywhere(stage, 3, 100);
    stage.wait_asleep();
    return stage.finish();
}

// Who was there before was killed in its sleep.
CaseOutcome flag_left_set(Stage& stage) {
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu)
        stage.rings().put_need_wake(stage.rings().history().present_buffer(cpu), 1,
                                    "need_wake is 1: a consumer that was here before left it so");
    emit_everywhere(stage, 2, 100);
    stage.start();
    stage.wait_asleep();
    emit_everywhere(stage, 1, 100);
    stage.wait_asleep();
    return stage.finish();
}

constexpr std::string_view kDelivers = "It delivers every event, and sleeps on none.";
constexpr std::string_view kFollows = "It follows to each new buffer, and sleeps on no old one.";

void add_ways_back_to_sleep(const AddCase& add) {
    add("5.1.8.2-6/event-after-a-wake-for-nothing", Level::must, "5.1.8.2-6",
        "an event at every step after a wake without one",
        "The sleeping consumer is woken without an event; an event comes before each of its next "
        "accesses to the metadata page in turn.",
        kDelivers, [](Stage& stage) { return event_after_nothing(stage, 0); });
    add("5.1.8.2-6/event-after-an-interruption", Level::must, "5.1.8.2-6",
        "an event at every step after an interrupted wait",
        "The wait of the sleeping consumer returns EINTR; an event comes before each of its next "
        "accesses to the metadata page in turn.",
        kDelivers, [](Stage& stage) { return event_after_nothing(stage, -EINTR); });
    add("E3/swap-after-a-wake-for-nothing", Level::erratum, "E3",
        "a swap at every step after a wake without an event",
        "The sleeping consumer is woken without an event; its buffer is replaced before each of "
        "its next accesses to the metadata page in turn.",
        kFollows, [](Stage& stage) { return swap_after_nothing(stage, 0); });
    add("E3/swap-after-an-interruption", Level::erratum, "E3",
        "a swap at every step after an interrupted wait",
        "The wait of the sleeping consumer returns EINTR; its buffer is replaced before each of "
        "its next accesses to the metadata page in turn.",
        kFollows, [](Stage& stage) { return swap_after_nothing(stage, -EINTR); });
    add("5.1.8.2-6/event-after-a-timeout", Level::must, "5.1.8.2-6",
        "an event at every step after a wait that timed out",
        "The wait of the sleeping consumer returns ETIMEDOUT, where it has a limit; an event comes "
        "before each of its next accesses to the metadata page in turn.",
        kDelivers, [](Stage& stage) { return event_after_nothing(stage, -ETIMEDOUT); });
    add("E3/swap-after-a-timeout", Level::erratum, "E3",
        "a swap at every step after a wait that timed out",
        "The wait of the sleeping consumer returns ETIMEDOUT, where it has a limit; its buffer is "
        "replaced before each of its next accesses to the metadata page in turn.",
        kFollows, [](Stage& stage) { return swap_after_nothing(stage, -ETIMEDOUT); });
    add("5.1.8.2-6/event-after-many-wakes-for-nothing", Level::must, "5.1.8.2-6",
        "an event at every step after twenty wakes without one",
        "The sleeping consumer is woken twenty times without an event; an event comes before each "
        "of its accesses to the metadata page after the last wake in turn.",
        kDelivers, [](Stage& stage) { return event_after_many(stage, 0); });
    add("5.1.8.2-6/event-after-many-interruptions", Level::must, "5.1.8.2-6",
        "an event at every step after twenty interrupted waits",
        "The wait of the sleeping consumer returns EINTR twenty times; an event comes before each "
        "of its accesses to the metadata page after the last in turn.",
        kDelivers, [](Stage& stage) { return event_after_many(stage, -EINTR); });
    add("5.1.8.2-6/event-after-many-timeouts", Level::must, "5.1.8.2-6",
        "an event at every step after twenty waits that timed out",
        "The wait of the sleeping consumer returns ETIMEDOUT, where it has a limit, twenty times; "
        "an event comes before each of its accesses to the metadata page after the last in turn.",
        kDelivers, [](Stage& stage) { return event_after_many(stage, -ETIMEDOUT); });
    add("E3/swap-after-many-wakes-for-nothing", Level::erratum, "E3",
        "a swap at every step after twenty wakes without an event",
        "The sleeping consumer is woken twenty times without an event; its buffer is replaced "
        "before each of its accesses to the metadata page after the last wake in turn.",
        kFollows, swap_after_many);
    add("E3/swap-before-any-event", Level::erratum, "E3", "a swap at every step before any event",
        "The consumer of a CPU that never had an event is woken for nothing; its buffer is "
        "replaced before each of its next accesses to the metadata page in turn.",
        kFollows, swap_before_any_event);
}

}  // namespace

void add_found_sleep_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add_ways_back_to_sleep(add);
    add("E10/a-thousand-unread", Level::erratum, "E10",
        "a thousand unread events in the old buffer",
        "1000 events are unread when the buffer is replaced by one that holds few of them.",
        "All are delivered, from the old buffer first.", a_thousand_unread);
    add("contract-4/other-ends", Level::must, "contract-4", "end events of other shapes",
        "End events with a payload, with a longer header, and of other origins.",
        "Each ends its CPU.", other_ends);
    add("5.1.8.2-2/event-at-every-step-on-the-last-cpu", Level::must, "5.1.8.2-2",
        "an event at every step, on the last CPU",
        "An event comes on the last CPU before each access to its metadata page in turn.",
        kDelivers, event_on_the_last_cpu);
    add("E3/swap-at-every-step-on-the-last-cpu", Level::erratum, "E3",
        "a swap at every step, on the last CPU",
        "The buffers are replaced before each access to the last CPU's metadata page in turn.",
        kFollows, swap_on_the_last_cpu);
    add("5.1.1/some-of-sixty-four", Level::must, "5.1.1", "events on some of 64 sleeping CPUs",
        "64 CPUs, all asleep; single events on some of them, then one on each at the same time.",
        "Each is delivered when it comes.", some_of_sixty_four);
    add("5.1.8.2-2/event-at-every-step-of-thirty-six", Level::must, "5.1.8.2-2",
        "an event at every step, on one of 36 CPUs",
        "An event comes on CPU 33 before each access to its metadata page in turn.", kDelivers,
        event_of_many);
    add("E3/swap-at-every-step-of-thirty-six", Level::erratum, "E3",
        "a swap at every step, on one of 36 CPUs",
        "The buffer of CPU 33 is replaced before each access to its metadata page in turn.",
        kFollows, swap_of_many);
    add("5.1.8.3/change-of-twenty", Level::must, "5.1.8.3", "new buffers on 20 sleeping CPUs",
        "All buffers of 20 CPUs are replaced while all sleep; then single events on some of them.",
        kFollows, change_of_twenty);
    add("5.1.8.2-2/event-at-every-step-after-three-hundred-sleeps", Level::must, "5.1.8.2-2",
        "an event at every step, after three hundred sleeps",
        "300 events come on one CPU, one whenever its consumer sleeps; then one before each of its "
        "accesses to the metadata page in turn.",
        kDelivers, event_after_three_hundred_sleeps);
    add("5.1.8.3/three-hundred-changes", Level::must, "5.1.8.3",
        "three hundred new buffers on one CPU",
        "The buffer of one CPU is replaced 300 times, with an event behind each.", kFollows,
        three_hundred_changes);
    add("event-model/five-mebibytes", Level::must, "event-model",
        "an event of 5 MiB, a header of 200,000 bytes",
        "A ring of 16 MiB with an event of 5 MiB, and one with a header of more than 2^17 bytes.",
        "Both are delivered whole.", five_mebibytes);
    add("event-model/nine-mebibytes", Level::must, "event-model", "an event of 9 MiB",
        "A ring of 32 MiB with an event of 9 MiB: more than the stack of a thread, as a rule.",
        "It is delivered whole.", [](Stage& stage) { return one_event_of(stage, 9, 32); });
    add("event-model/eighteen-mebibytes", Level::must, "event-model", "an event of 18 MiB",
        "A ring of 64 MiB with an event of 18 MiB: more than 2^24 bytes.", "It is delivered whole.",
        [](Stage& stage) { return one_event_of(stage, 18, 64); });
    add("E20/fills-the-new-buffer", Level::erratum, "E20", "an event as large as the new buffer",
        "An event survives a shrink to exactly its own size.", "It is delivered whole.",
        fills_the_new_buffer);
    add("E11/empty-and-begins-at-zero", Level::erratum, "E11",
        "an empty buffer is replaced by one that begins at 0",
        "The old buffer begins at a large position and has no event; the new one begins at 0.",
        "It begins at tail_pos of the new buffer.", empty_and_at_zero);
    add("5.1.6.3/flag-left-set", Level::must, "5.1.6.3", "need_wake is set from before",
        "need_wake is 1 in every buffer when the testee attaches: another consumer was killed in "
        "its sleep.",
        "It takes no notice, and delivers everything.", flag_left_set);
}

}  // namespace kmes::conformance
