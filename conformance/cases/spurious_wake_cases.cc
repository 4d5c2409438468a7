// SPDX-License-Identifier: MIT
//
// After a wake without an event, an interruption or a timeout (5.1.8.2 step 6, E3): an event or a
// swap at every step until the consumer sleeps again.
#include <cerrno>

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

}  // namespace

void add_spurious_wake_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add("5.1.8.2-6/event-after-a-wake-for-nothing", Level::must, "5.1.8.2-6",
        "an event at every step after a spurious wake",
        "Wake the sleeping consumer without an event. Emit an event before each of its next "
        "accesses to the metadata page in turn.",
        kDelivers, [](Stage& stage) { return event_after_nothing(stage, 0); });
    add("5.1.8.2-6/event-after-an-interruption", Level::must, "5.1.8.2-6",
        "an event at every step after an interrupted wait",
        "Return EINTR from the wait of the sleeping consumer. Emit an event before each of its "
        "next accesses to the metadata page in turn.",
        kDelivers, [](Stage& stage) { return event_after_nothing(stage, -EINTR); });
    add("E3/swap-after-a-wake-for-nothing", Level::erratum, "E3",
        "a swap at every step after a spurious wake",
        "Wake the sleeping consumer without an event. Replace its buffer before each of its next "
        "accesses to the metadata page in turn.",
        kFollows, [](Stage& stage) { return swap_after_nothing(stage, 0); });
    add("E3/swap-after-an-interruption", Level::erratum, "E3",
        "a swap at every step after an interrupted wait",
        "Return EINTR from the wait of the sleeping consumer. Replace its buffer before each of "
        "its next accesses to the metadata page in turn.",
        kFollows, [](Stage& stage) { return swap_after_nothing(stage, -EINTR); });
    add("5.1.8.2-6/event-after-a-timeout", Level::must, "5.1.8.2-6",
        "an event at every step after a wait that timed out",
        "Return ETIMEDOUT from the wait of the sleeping consumer, if it has a limit. Emit an event "
        "before each of its next accesses to the metadata page in turn.",
        kDelivers, [](Stage& stage) { return event_after_nothing(stage, -ETIMEDOUT); });
    add("E3/swap-after-a-timeout", Level::erratum, "E3",
        "a swap at every step after a wait that timed out",
        "Return ETIMEDOUT from the wait of the sleeping consumer, if it has a limit. Replace its "
        "buffer before each of its next accesses to the metadata page in turn.",
        kFollows, [](Stage& stage) { return swap_after_nothing(stage, -ETIMEDOUT); });
    add("5.1.8.2-6/event-after-many-wakes-for-nothing", Level::must, "5.1.8.2-6",
        "an event at every step after twenty spurious wakes",
        "Wake the sleeping consumer twenty times without an event. After the last wake, emit an "
        "event before each of its accesses to the metadata page in turn.",
        kDelivers, [](Stage& stage) { return event_after_many(stage, 0); });
    add("5.1.8.2-6/event-after-many-interruptions", Level::must, "5.1.8.2-6",
        "an event at every step after twenty interrupted waits",
        "Return EINTR twenty times from the wait of the sleeping consumer. After the last one, "
        "emit an event before each of its accesses to the metadata page in turn.",
        kDelivers, [](Stage& stage) { return event_after_many(stage, -EINTR); });
    add("5.1.8.2-6/event-after-many-timeouts", Level::must, "5.1.8.2-6",
        "an event at every step after twenty waits that timed out",
        "Return ETIMEDOUT twenty times from the wait of the sleeping consumer, if it has a limit. "
        "After the last one, emit an event before each of its accesses to the metadata page in "
        "turn.",
        kDelivers, [](Stage& stage) { return event_after_many(stage, -ETIMEDOUT); });
    add("E3/swap-after-many-wakes-for-nothing", Level::erratum, "E3",
        "a swap at every step after twenty spurious wakes",
        "Wake the sleeping consumer twenty times without an event. After the last wake, replace "
        "its buffer before each of its accesses to the metadata page in turn.",
        kFollows, swap_after_many);
    add("E3/swap-before-any-event", Level::erratum, "E3", "a swap at every step before any event",
        "Wake the consumer of a CPU that never had an event. Replace its buffer before each of its "
        "next accesses to the metadata page in turn.",
        kFollows, swap_before_any_event);
}

}  // namespace kmes::conformance
