// SPDX-License-Identifier: MIT
//
// What follows an unusual round (unusual_round.h): an event, or a swap, at every step until it
// sleeps. The full barrier on that way is looked at in store_buffer_cases.cc.
#include <vector>

#include "conformance/cases/play.h"
#include "conformance/cases/unusual_round.h"

namespace kmes::conformance {

namespace {

CaseOutcome at_every_step(Stage& stage, const std::vector<Unusual>& rounds,
                          const std::function<void()>& act) {
    set_up_for_unusual_rounds(stage);
    stage.start();
    stage.wait_asleep();
    for (const Unusual unusual : rounds) {
        play_after(unusual, [&] { act_at_every_access_after(stage, unusual, act); });
    }
    return stage.finish();
}

CaseOutcome event_at_every_step(Stage& stage) {
    // In the last two it may not have looked at generation yet when it is stopped first; an event
    // is owed all the same.
    return at_every_step(
        stage,
        {Unusual::given_up, Unusual::lapped, Unusual::torn, Unusual::torn_whole, Unusual::refused,
         Unusual::new_buffer, Unusual::empty_buffer, Unusual::replaced_meanwhile, Unusual::many},
        [&stage] { emit_some(stage, 0, 1, 70); });
}

// As in E3/swap-at-every-step, nobody needs to be nudged.
CaseOutcome swap_at_every_step(Stage& stage) {
    stage.set_nudging(false);
    return at_every_step(stage,
                         {Unusual::given_up, Unusual::lapped, Unusual::torn, Unusual::torn_whole,
                          Unusual::refused, Unusual::new_buffer, Unusual::many},
                         [&stage] {
                             stage.resize(stage.capacity_bytes());
                             emit_some(stage, 0, 1, 70);
                         });
}

CaseOutcome swap_at_every_step_of_the_drain(Stage& stage) {
    stage.set_nudging(false);
    return at_every_step(stage,
                         {Unusual::given_up, Unusual::lapped, Unusual::torn, Unusual::torn_whole,
                          Unusual::refused, Unusual::new_buffer, Unusual::many},
                         [&stage] { leave_in_the_old_buffer(stage, 1); });
}

}  // namespace

void add_unusual_round_cases(std::vector<Case>& cases) {
    const AddCase add = add_to(cases);
    add("E2/event-at-every-step-after-unusual-rounds", Level::erratum, "E2",
        "an event at every step to sleep, after an unusual round",
        "The consumer has given up a sleep because its second look found an event; was lapped; has "
        "discarded a torn read, with sizes that fit and with others; had its wait refused "
        "(EAGAIN); "
        "has moved to a new buffer, to an empty one, and to one that was replaced before it had "
        "looked at it; has delivered 800 events in one round. After each of "
        "these an event comes at every access to the metadata page in turn, until it sleeps.",
        "No event is slept on: it looks at write_pos again each time, whatever came before.",
        event_at_every_step);
    add("E3/swap-at-every-step-after-unusual-rounds", Level::erratum, "E3",
        "a resize at every step to sleep, after an unusual round",
        "The consumer has given up a sleep because its second look found an event; was lapped; has "
        "discarded a torn read, with sizes that fit and with others; had its wait refused "
        "(EAGAIN); "
        "has moved to a new buffer, and delivered an event there; has delivered 800 events in one "
        "round. After each of these a resize, "
        "and an event in the new buffer, come at every access to the metadata page in turn, until "
        "it sleeps.",
        "It does not sleep on the retired buffer: it looks at generation again each time, whatever "
        "came before.",
        swap_at_every_step);
    add("E24/swap-at-every-step-after-unusual-rounds", Level::erratum, "E24",
        "a resize at every step of a drain, after an unusual round",
        "The consumer has given up a sleep because its second look found an event; was lapped; has "
        "discarded a torn read, with sizes that fit and with others; had its wait refused "
        "(EAGAIN); has moved to a new buffer, and delivered an event there; has delivered 800 "
        "events in one round. After each of these an event, a resize that shifts all positions, "
        "and a lap of the new buffer come at every access to the metadata page in turn, until it "
        "sleeps.",
        "write_pos of the old buffer is looked at again after generation has changed, whatever "
        "came before: nothing is lost.",
        swap_at_every_step_of_the_drain);
}

}  // namespace kmes::conformance
