// SPDX-License-Identifier: MIT
//
// Sleeping and waking (5.1.8.2, E1 to E3, E17). An event, a swap or a spurious wake comes at every
// step. Before that comes a wake with an event, one without, or an unusual iteration
// (unusual_iteration.h). store_buffer_cases.cc checks the full barrier.
#include <cerrno>

#include "conformance/cases/play.h"
#include "conformance/play/first_accesses.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

// In the rows without nudging no consumer attaches in the middle of a swap. Every consumer sleeps
// on its current buffer when its iteration begins. A consumer that sleeps on a retired one made the
// mistake itself, so it gets no nudge.
const Steps kResizeAndEmit{Resize{}, Emit{1, 70}};

// A consumer that adapts to spurious wakes has adapted by then.
constexpr int kWakes = 20;

// The monitors of need_wake and of the futex check each sleep.
const Steps kFiveSleeps{Times{5, {Asleep{}, EmitEverywhere{}}}};

// Makes every wake return EINTR, as after a signal.
CaseOutcome waits_that_return_eintr(Stage& stage) {
    // An event between the last check and the kernel's wait ends the wait with EAGAIN, which proves
    // nothing here. The suite needs a few iterations to wake a thread that slept with a timeout, or
    // for several CPUs.
    constexpr int kIterationsAtMost = 60;
    stage.hooks().set_wake_result(-EINTR);
    stage.start();
    for (int iteration = 0; iteration < 6 || (stage.hooks().reported_wake_results() < 3 &&
                                              iteration < kIterationsAtMost);
         ++iteration) {
        stage.wait_asleep();
        if (iteration >= 6) stage.waits().let_run(1);
        emit_everywhere(stage, 1, 80);
    }
    stage.wait_asleep();
    return stage.finish();
}

// Emits between the consumer's last check and the kernel's: at the entry of the futex wait.
CaseOutcome event_at_the_wait(Stage& stage) {
    int left = 6;
    stage.hooks().set_on_wait([&](const FutexWait&, std::uint32_t cpu) {
        if (left <= 0) return;
        --left;
        emit_some(stage, cpu, 1, 90);
    });
    stage.start();
    stage.waits().until([&left] { return left == 0; }, "six waits on futex_counter");
    stage.hooks().set_on_wait(nullptr);
    stage.wait_asleep();
    return stage.finish();
}

CaseOutcome load_order(Stage&) {
    stop_unsupported(
        "x86-64 does not reorder loads, so a missing fence before the second load of tail_pos "
        "cannot fail on this machine");
}

// An earlier consumer was killed in its sleep.
void set_every_need_wake(Stage& stage) {
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu)
        stage.rings().forged().put_need_wake(stage.rings().history().current_buffer(cpu), 1,
                                             "need_wake is 1, as an earlier consumer left it");
}

const Row kSleepRows[] = {
    {{"5.1.8.2-5/sleeps-and-wakes", Level::must, "sleep by futex, and wake",
      "Emit single events, each to a sleeping consumer.",
      "The consumer sleeps in a futex wait on futex_counter, is woken by the event, and delivers "
      "it."},
     {Asleep{},
      each_below(15,
                 [](std::uint64_t i) {
                     return Steps{OnCpu{static_cast<std::uint32_t>(i), {Emit{}, AsleepHere{}}}};
                 }),
      EmitEverywhere{}, Asleep{}}},
    {{"5.1.8.2-1/asks-to-be-woken", Level::must, "need_wake during a sleep",
      "Check need_wake whenever the consumer of CPU 0 sleeps without a time limit.",
      "The consumer has set need_wake to 1 by then."},
     kFiveSleeps},
    {{"E17/shared-futex", Level::erratum, "waits on a shared futex",
      "Check the operation of every futex wait on futex_counter.",
      "The consumer uses none with FUTEX_PRIVATE_FLAG."},
     kFiveSleeps},
    {{"5.1.8.2-6/spurious-wakes", Level::must, "spurious wakes",
      "Call FUTEX_WAKE without an event for every CPU, between events.",
      "The consumer invents nothing and sleeps again."},
     {Times{8, {Asleep{}, OnEachCpu{{SpuriousWake{}}}, Asleep{}, EmitEverywhere{1, 80}}},
      Asleep{}}},
    {{"5.1.8.2-5/interrupted-waits", Level::must, "interrupted waits",
      "Stop and continue the sleeping threads, every second time with an event in between.",
      "The consumer sleeps on, or delivers the event."},
     {Times{5, {Asleep{}, AtOnce{}, Asleep{}, AtOnce{{EmitEverywhere{1, 80}}}}}, Asleep{}}},
    {{"5.1.8.2-5/waits-that-return-eintr", Level::must, "EINTR from futex_wait",
      "Return EINTR from futex_wait at every wake, as if a signal had come.",
      "The consumer checks for events again, as after any wake."},
     waits_that_return_eintr},
    {{"E2/event-at-the-futex-wait", Level::erratum, "an event at the entry of the futex wait",
      "Publish an event after the last check, when the thread enters its futex wait.",
      "The consumer waits with a value of futex_counter that is older than the event, so the wait "
      "returns at once."},
     event_at_the_wait},
    {{"E2/event-at-every-step", Level::erratum, "an event at every step before a sleep",
      "Wake the consumer of CPU 0 with an event. Before each access to the metadata page in turn, "
      "until it sleeps, publish one more event.",
      "The consumer reads futex_counter before its last load of write_pos, so it never sleeps on "
      "an unread event."},
     {Asleep{}, BeforeEachAccess{{Emit{1, kLeastEventBytes}}}}},
    {{"E2/event-at-every-step-of-a-first-sleep", Level::erratum,
      "an event at every step before the first sleep",
      "Serve 24 CPUs. Publish an event on the k-th of them before the k-th access to its metadata "
      "page after the mmap.",
      "The consumer never sleeps on an unread event, the first time included."},
     {Asleep{}, LeaveFirstAccesses{}},
     {.cpus = 24, .before_start = {EmitAtFirstAccesses{}}}},
    {{"5.1.7/batch-at-every-step", Level::must, "a batch at every step before a sleep",
      "Wake the consumer of CPU 0. Before each access to the metadata page in turn, until it "
      "sleeps, publish a batch of three events.",
      "The consumer never sleeps on an unread event."},
     {Asleep{}, BeforeEachAccess{{Batch{{70, 70, 70}}}}}},
    {{"5.1.8.2/spurious-wake-at-every-step", Level::must, "a spurious wake at every step",
      "Wake the consumer of CPU 0. Before each access to the metadata page in turn, until it "
      "sleeps, call FUTEX_WAKE without an event.",
      "The consumer sleeps again."},
     {Asleep{}, BeforeEachAccess{{FutexWake{}}}}},
    {{"E3/swap-at-every-step", Level::erratum, "a resize at every step before a sleep",
      "Wake the consumer of CPU 0. Before each access to the metadata page in turn, until it "
      "sleeps, resize and emit an event in the new buffer.",
      "The consumer loads generation again after it sets need_wake, so it never sleeps on the "
      "retired buffer."},
     {Asleep{}, BeforeEachAccess{kResizeAndEmit}},
     {.nudging = false}},
    {{"E3/swap-without-an-event-at-every-step", Level::erratum,
      "a resize without an event at every step before a sleep",
      "Wake the consumer of CPU 0. Before each access to the metadata page in turn, until it "
      "sleeps, resize without an event.",
      "The consumer moves to the new buffer and sleeps there."},
     {Asleep{}, BeforeEachAccess{{Resize{}}}, EmitEverywhere{1, 70}, Asleep{}},
     {.nudging = false}},
    {{"E3/asleep-through-a-swap", Level::erratum, "a swap during a sleep",
      "Resize every buffer while the consumer sleeps. Then emit events.",
      "The consumer moves to the new buffer at the wake of the swap."},
     {Times{2, {Asleep{}, Resize{}, Asleep{}, Asleep{}, Resize{}, Asleep{}, EmitEverywhere{1, 80}}},
      Asleep{}},
     {.nudging = false}},
    {{"E4/data-before-the-second-load", Level::erratum,
      "a fence before the second load of tail_pos",
      "Perform the loads of the data after the second load of tail_pos.",
      "The consumer keeps the order by an acquire fence between the two."},
     load_order},
};

const Row kLeftFlagRows[] = {
    {{"5.1.6.3/flag-left-set", Level::must, "need_wake set from the beginning",
      "Set need_wake to 1 in every buffer before the attach, as a consumer that was killed in its "
      "sleep leaves it.",
      "The consumer ignores the old value and delivers every event."},
     {Asleep{}, EmitEverywhere{}, Asleep{}},
     {.before_start = {Call{set_every_need_wake}, EmitEverywhere{2, 100}}}},
};

// After a wake without an event, an interruption or a timeout.
const Row kSpuriousWakeRows[] = {
    {{"5.1.8.2-6/event-after-a-spurious-wake", Level::must,
      "an event at every step after a spurious wake",
      "Wake the sleeping consumer without an event. Emit an event before each of its next "
      "accesses to the metadata page in turn.",
      kDelivers},
     {Asleep{}, BeforeEachAccess{.actions = {Emit{1, 70}}, .spurious_wakes = 1}},
     {.cpus = 1}},
    {{"5.1.8.2-6/event-after-an-interruption", Level::must,
      "an event at every step after an interrupted wait",
      "Return EINTR from the wait of the sleeping consumer. Emit an event before each of its next "
      "accesses to the metadata page in turn.",
      kDelivers},
     {Asleep{}, BeforeEachAccess{.actions = {Emit{1, 70}}, .spurious_wakes = 1}},
     {.cpus = 1, .wake_result = -EINTR}},
    {{"E3/swap-after-a-spurious-wake", Level::erratum, "a swap at every step after a spurious wake",
      "Wake the sleeping consumer without an event. Replace its buffer before each of its next "
      "accesses to the metadata page in turn.",
      kFollows},
     {Asleep{}, BeforeEachAccess{.actions = kResizeAndEmit, .spurious_wakes = 1}},
     {.cpus = 1, .nudging = false}},
    {{"E3/swap-after-an-interruption", Level::erratum,
      "a swap at every step after an interrupted wait",
      "Return EINTR from the wait of the sleeping consumer. Replace its buffer before each of its "
      "next accesses to the metadata page in turn.",
      kFollows},
     {Asleep{}, BeforeEachAccess{.actions = kResizeAndEmit, .spurious_wakes = 1}},
     {.cpus = 1, .wake_result = -EINTR, .nudging = false}},
    {{"5.1.8.2-6/event-after-a-timeout", Level::must,
      "an event at every step after a wait that timed out",
      "Return ETIMEDOUT from the wait of the sleeping consumer, if it has a limit. Emit an event "
      "before each of its next accesses to the metadata page in turn.",
      kDelivers},
     {Asleep{}, BeforeEachAccess{.actions = {Emit{1, 70}}, .spurious_wakes = 1}},
     {.cpus = 1, .wake_result = -ETIMEDOUT}},
    {{"E3/swap-after-a-timeout", Level::erratum, "a swap at every step after a wait that timed out",
      "Return ETIMEDOUT from the wait of the sleeping consumer, if it has a limit. Replace its "
      "buffer before each of its next accesses to the metadata page in turn.",
      kFollows},
     {Asleep{}, BeforeEachAccess{.actions = kResizeAndEmit, .spurious_wakes = 1}},
     {.cpus = 1, .wake_result = -ETIMEDOUT, .nudging = false}},
    {{"5.1.8.2-6/event-after-many-spurious-wakes", Level::must,
      "an event at every step after twenty spurious wakes",
      "Wake the sleeping consumer twenty times without an event. After the last wake, emit an "
      "event before each of its accesses to the metadata page in turn.",
      kDelivers},
     {Asleep{}, BeforeEachAccess{.actions = {Emit{1, 70}}, .spurious_wakes = kWakes}},
     {.cpus = 1}},
    {{"5.1.8.2-6/event-after-many-interruptions", Level::must,
      "an event at every step after twenty interrupted waits",
      "Return EINTR twenty times from the wait of the sleeping consumer. After the last one, emit "
      "an event before each of its accesses to the metadata page in turn.",
      kDelivers},
     {Asleep{}, BeforeEachAccess{.actions = {Emit{1, 70}}, .spurious_wakes = kWakes}},
     {.cpus = 1, .wake_result = -EINTR}},
    {{"5.1.8.2-6/event-after-many-timeouts", Level::must,
      "an event at every step after twenty waits that timed out",
      "Return ETIMEDOUT twenty times from the wait of the sleeping consumer, if it has a limit. "
      "After the last one, emit an event before each of its accesses to the metadata page in turn.",
      kDelivers},
     {Asleep{}, BeforeEachAccess{.actions = {Emit{1, 70}}, .spurious_wakes = kWakes}},
     {.cpus = 1, .wake_result = -ETIMEDOUT}},
    {{"E3/swap-after-many-spurious-wakes", Level::erratum,
      "a swap at every step after twenty spurious wakes",
      "Wake the sleeping consumer twenty times without an event. After the last wake, replace its "
      "buffer before each of its accesses to the metadata page in turn.",
      kFollows},
     {Asleep{}, BeforeEachAccess{.actions = kResizeAndEmit, .spurious_wakes = kWakes}},
     {.cpus = 1, .nudging = false}},
    {{"E3/swap-before-any-event", Level::erratum, "a swap at every step before any event",
      "Wake the consumer of a CPU that never had an event. Replace its buffer before each of its "
      "next accesses to the metadata page in turn.",
      kFollows},
     {Asleep{}, BeforeEachAccess{.actions = {Resize{}}, .spurious_wakes = 1}, Emit{1, 70},
      Asleep{}},
     {.cpus = 1, .nudging = false}},
};

// After a new buffer the consumer has loaded its generation, unless the buffer is empty or
// replaced. In these cases an event must still wake it, but a swap need not.
const std::vector<Disturbance> kKnownDisturbances{
    Disturbance::given_up, Disturbance::lapped,     Disturbance::torn, Disturbance::torn_whole,
    Disturbance::refused,  Disturbance::new_buffer, Disturbance::many};
const std::vector<Disturbance> kAllDisturbances{
    Disturbance::given_up,     Disturbance::lapped,
    Disturbance::torn,         Disturbance::torn_whole,
    Disturbance::refused,      Disturbance::new_buffer,
    Disturbance::empty_buffer, Disturbance::replaced_meanwhile,
    Disturbance::many};

Step after_each(const std::vector<Disturbance>& disturbances, const Steps& actions) {
    return each(disturbances, [&actions](Disturbance disturbance) {
        return Steps{BeforeEachAccess{.actions = actions, .after = disturbance}};
    });
}

const Setup kUnusual{.cpus = 1, .capacity = kUnusualCapacity};
const Setup kUnusualNotNudged{.cpus = 1, .capacity = kUnusualCapacity, .nudging = false};

const Row kUnusualIterationRows[] = {
    {{"E2/event-at-every-step-after-unusual-iterations", Level::erratum,
      "event at every step before a sleep, after an unusual iteration",
      "Take the consumer through an unusual iteration: an event found by the second check, a lap, "
      "a torn read, EAGAIN, a new buffer (empty or replaced), 800 events. Then emit an event "
      "before each access to the metadata page in turn.",
      "The consumer loads write_pos again each time, whatever came before, so it never sleeps on "
      "an unread event."},
     {Asleep{}, after_each(kAllDisturbances, {Emit{1, 70}})},
     kUnusual},
    {{"E3/swap-at-every-step-after-unusual-iterations", Level::erratum,
      "a resize at every step before a sleep, after an unusual iteration",
      "Take the consumer through an unusual iteration: an event found by the second check, a lap, "
      "a torn read, EAGAIN, a new buffer, 800 events. Then resize and emit an event before each "
      "access to the metadata page in turn.",
      "The consumer loads generation again each time, whatever came before, so it never sleeps on "
      "the retired buffer."},
     {Asleep{}, after_each(kKnownDisturbances, kResizeAndEmit)},
     kUnusualNotNudged},
    {{"E24/swap-at-every-step-after-unusual-iterations", Level::erratum,
      "a resize at every step of a drain, after an unusual iteration",
      "Take the consumer through an unusual iteration: an event found by the second check, a lap, "
      "a torn read, EAGAIN, a new buffer, 800 events. Then emit an event, resize with shifted "
      "positions and lap before each access in turn.",
      "The consumer loads write_pos of the old buffer again after generation has changed, "
      "whatever came before, and loses nothing."},
     {Asleep{}, after_each(kKnownDisturbances, leave_in_the_old_buffer(1))},
     kUnusualNotNudged},
};

}  // namespace

const std::vector<Case> kSleepCases = cases_of(kSleepRows);
const std::vector<Case> kLeftFlagCases = cases_of(kLeftFlagRows);
const std::vector<Case> kSpuriousWakeCases = cases_of(kSpuriousWakeRows);
const std::vector<Case> kUnusualIterationCases = cases_of(kUnusualIterationRows);

}  // namespace kmes::conformance
