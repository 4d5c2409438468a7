// SPDX-License-Identifier: MIT
//
// What follows an unusual iteration (unusual_round.h): an event, or a swap, at every step until the
// consumer sleeps. store_buffer_cases.cc checks the full barrier there.
#include <vector>

#include "conformance/cases/play.h"
#include "conformance/play/unusual_round.h"

namespace kmes::conformance {

namespace {

CaseOutcome at_every_step(Stage& stage, const std::vector<Disturbance>& rounds,
                          const std::function<void()>& act) {
    set_up_for_unusual_rounds(stage);
    stage.start();
    stage.wait_asleep();
    for (const Disturbance disturbance : rounds) {
        play_after(disturbance, [&] { act_at_every_access_after(stage, disturbance, act); });
    }
    return stage.finish();
}

CaseOutcome event_at_every_step(Stage& stage) {
    // In the last two, the consumer may not have loaded generation yet at its first stop. An event
    // is owed all the same.
    return at_every_step(
        stage,
        {Disturbance::given_up, Disturbance::lapped, Disturbance::torn, Disturbance::torn_whole,
         Disturbance::refused, Disturbance::new_buffer, Disturbance::empty_buffer,
         Disturbance::replaced_meanwhile, Disturbance::many},
        [&stage] { emit_some(stage, 0, 1, 70); });
}

// As in E3/swap-at-every-step, no nudge is needed.
CaseOutcome swap_at_every_step(Stage& stage) {
    stage.set_nudging(false);
    return at_every_step(
        stage,
        {Disturbance::given_up, Disturbance::lapped, Disturbance::torn, Disturbance::torn_whole,
         Disturbance::refused, Disturbance::new_buffer, Disturbance::many},
        [&stage] {
            stage.resize(stage.capacity_bytes());
            emit_some(stage, 0, 1, 70);
        });
}

CaseOutcome swap_at_every_step_of_the_drain(Stage& stage) {
    stage.set_nudging(false);
    return at_every_step(
        stage,
        {Disturbance::given_up, Disturbance::lapped, Disturbance::torn, Disturbance::torn_whole,
         Disturbance::refused, Disturbance::new_buffer, Disturbance::many},
        [&stage] { leave_in_the_old_buffer(stage, 1); });
}

}  // namespace

void add_unusual_round_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add("E2/event-at-every-step-after-unusual-rounds", Level::erratum, "E2",
        "event at every step before a sleep, after an unusual iteration",
        "Take the consumer through an unusual iteration: an event found by the second check, a "
        "lap, a torn read, EAGAIN, a new buffer (empty or replaced), 800 events. Then emit an "
        "event before each access to the metadata page in turn.",
        "The consumer loads write_pos again each time, whatever came before, so it never sleeps on "
        "an unread event.",
        event_at_every_step);
    add("E3/swap-at-every-step-after-unusual-rounds", Level::erratum, "E3",
        "resize at every step before a sleep, after an unusual iteration",
        "Take the consumer through an unusual iteration: an event found by the second check, a "
        "lap, a torn read, EAGAIN, a new buffer, 800 events. Then resize and emit an event before "
        "each access to the metadata page in turn.",
        "The consumer loads generation again each time, whatever came before, so it never sleeps "
        "on the retired buffer.",
        swap_at_every_step);
    add("E24/swap-at-every-step-after-unusual-rounds", Level::erratum, "E24",
        "a resize at every step of a drain, after an unusual iteration",
        "Take the consumer through an unusual iteration: an event found by the second check, a "
        "lap, a torn read, EAGAIN, a new buffer, 800 events. Then emit an event, resize with "
        "shifted positions and lap before each access in turn.",
        "The consumer loads write_pos of the old buffer again after generation has changed, "
        "whatever came before, and loses nothing.",
        swap_at_every_step_of_the_drain);
}

}  // namespace kmes::conformance
