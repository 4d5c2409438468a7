// SPDX-License-Identifier: MIT
//
// Two consumers on one buffer (E12; --shared). The other one is played by the suite, on the page:
// it keeps to the letter of 5.1.8.2, and was stopped by the scheduler after its wake. When it goes
// on it clears need_wake, as step 6 says, and so erases the request of the testee, which is asleep
// by then. The next event wakes nobody. A consumer that cannot know who else is there sleeps with a
// limit.
#include <fmt/format.h>

#include "conformance/cases/play.h"

namespace kmes::conformance {

namespace {

// The other consumer's store at 5.1.8.2 step 6.
void other_clears(Stage& stage) {
    stage.rings().put_need_wake(stage.rings().history().present_buffer(0), 0);
}

// Runs `play`; a wake-up that is lost in it is this erratum's, with the interleaving.
void explain(const std::function<void()>& play, const std::string& interleaving) {
    try {
        play();
    } catch (Stop& stop) {
        if (stop.verdict == Verdict::fail && stop.finding.code == FindingCode::lost_wake_up) {
            stop.finding.clause = "E12";
            stop.finding.message += "; " + interleaving;
        }
        throw;
    }
}

CaseOutcome cleared_while_it_sleeps(Stage& stage) {
    constexpr int kRounds = 4;
    set_up_one_cpu(stage);
    stage.start();
    stage.wait_asleep();
    for (int round = 0; round < kRounds; ++round) {
        // Both are woken; the other one gets no further. The testee drains, and sleeps again.
        emit_some(stage, 0, 1, 100);
        stage.wait_asleep(0);
        other_clears(stage);
        explain(
            [&stage] {
                emit_some(stage, 0, 1, 100);
                stage.wait_delivered(0);
                stage.wait_asleep(0);
            },
            "another consumer of the buffer, woken by the event before, cleared need_wake after "
            "the testee had set it and gone to sleep: the producer saw 0 and woke nobody");
    }
    return stage.finish();
}

// The other one's store comes before each access of the testee to the page, in turn.
CaseOutcome cleared_at_every_step(Stage& stage) {
    set_up_one_cpu(stage);
    stage.start();
    stage.wait_asleep();
    explain([&stage] { act_at_every_access(stage, 0, [&stage] { other_clears(stage); }); },
            "another consumer of the buffer cleared need_wake while the testee was on its way to "
            "sleep: the producer saw 0 and woke nobody");
    return stage.finish();
}

// The other one was woken in vain and asks again: the flag is 1 although the testee is awake, and
// the testee clears it. That is harmless for the testee itself, whatever its mode.
CaseOutcome set_at_every_step(Stage& stage) {
    set_up_one_cpu(stage);
    stage.start();
    stage.wait_asleep();
    act_at_every_access(stage, 0, [&stage] {
        stage.rings().put_need_wake(stage.rings().history().present_buffer(0), 1);
    });
    return stage.finish();
}

}  // namespace

void add_shared_cases(std::vector<Case>& cases) {
    const auto add = [&cases](std::string_view id, std::string_view title,
                              std::string_view description, std::string_view expectation,
                              CaseFunction run) {
        cases.push_back({id, Level::erratum, "E12", title, description, expectation, std::move(run),
                         Demand::shared});
    };
    constexpr std::string_view kLimit =
        "It does not sleep for ever on a published event: who shares a buffer sleeps with a limit.";
    add("E12/cleared-while-it-sleeps", "another consumer clears need_wake",
        "A second consumer of the buffer, stopped after its wake, clears need_wake when the testee "
        "sleeps again; then an event comes.",
        kLimit, cleared_while_it_sleeps);
    add("E12/cleared-at-every-step", "another consumer clears need_wake at every step",
        "As before, before each access of the testee to the metadata page in turn.", kLimit,
        cleared_at_every_step);
    add("E12/set-at-every-step", "another consumer sets need_wake at every step",
        "A second consumer of the buffer asks to be woken before each access of the testee to the "
        "metadata page in turn.",
        "It takes what wakes it in vain, and sleeps again.", set_at_every_step);
}

}  // namespace kmes::conformance
