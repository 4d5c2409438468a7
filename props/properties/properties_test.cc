// SPDX-License-Identifier: MIT
//
// The properties of producer and reader, each with its name and clause, over random scripts. All
// are checked at every access of every script (props/machine). A test here draws the scripts in
// which its property is most likely to break. It also fails if the events that the property is
// about never happened.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "props/machine/play.h"
#include "props/script/arbitrary.h"

namespace kmes::props {
namespace {

// Plays random scripts of these profiles. Returns the sum of their counts.
Seen hold(const std::vector<Profile>& profiles) {
    Seen seen;
    for (const Profile profile : profiles) {
        const bool holds = rc::check([&seen, profile] {
            const Script script = *scripts(profile);
            const PlayResult result = play(script);
            if (result.failure) RC_FAIL(describe(script, *result.failure));
            seen += result.seen;
        });
        EXPECT_TRUE(holds);
    }
    return seen;
}

// 5.1.7 steps 7 and 8, 5.1.8.1: at any time whole events fill the bytes between tail_pos and
// write_pos. No consumer delivers a torn or unpublished event.
TEST(Property, PublicationShowsWholeEventsOnly) {
    const Seen seen = hold({Profile::schedules, Profile::batches});
    EXPECT_GT(seen.deliveries, 0u);
    EXPECT_GT(seen.torn, 0u);
}

// 5.1.4, 5.1.5, 5.1.6: the producer writes only bytes of its event or of its fields, and a reader
// stays in its mapping.
TEST(Property, ContainmentHoldsForEveryAccess) {
    const Seen seen = hold({Profile::anything, Profile::readers});
    EXPECT_GT(seen.crossed_end, 0u);
    EXPECT_GT(seen.overwritten, 0u);
}

// 5.1.8.1, 5.1.9, E21: each consumer gets rising numbers, each once.
TEST(Property, OrderIsThatOfTheSequenceNumbers) {
    const Seen seen = hold({Profile::readers, Profile::resizes});
    EXPECT_GT(seen.deliveries, 0u);
    EXPECT_GT(seen.switches, 0u);
}

// 5.1.9, E10: events that are passed over no longer exist, and are counted exactly.
TEST(Property, LossIsExact) {
    const Seen seen = hold({Profile::readers, Profile::schedules});
    EXPECT_GT(seen.lost, 0u);
    EXPECT_GT(seen.laps, 0u);
    EXPECT_GT(seen.dropped, 0u);
}

// E8: whatever a batch needs, tail_pos never passes the published write_pos.
TEST(Property, TailIsNeverBeyondWhatIsPublished) {
    const Seen seen = hold({Profile::batches});
    EXPECT_GT(seen.published_early, 0u);
}

// E13, E23: however many small events are overwritten, few sizes are read back.
TEST(Property, WalkIsBounded) {
    const Seen seen = hold({Profile::anything, Profile::batches});
    EXPECT_GT(seen.sizes, 1u);
}

// 5.1.8.4, E10, E11, E18: the longest suffix of whole events that fits, whole and in order.
TEST(Property, ResizeKeepsTheNewestSuffix) {
    const Seen seen = hold({Profile::resizes});
    EXPECT_GT(seen.swaps, 0u);
    EXPECT_GT(seen.left_behind, 0u);
}

// 5.1.2, 5.1.7 steps 2 and 5, E16: no number is skipped or assigned twice, over the boot hand-over,
// swaps, drops and interrupts.
TEST(Property, SequenceIsContinuous) {
    const Seen seen = hold({Profile::resizes, Profile::schedules});
    EXPECT_GT(seen.handovers, 0u);
    EXPECT_GT(seen.swaps, 0u);
    EXPECT_GT(seen.dropped, 0u);
    EXPECT_GT(seen.nested, 0u);
}

// 5.1.7 step 9, E1, E3: a wake happens if need_wake was set, or a buffer was retired, and only
// then.
TEST(Property, WakeComesExactlyWhenItIsAskedFor) {
    const Seen seen = hold({Profile::schedules, Profile::readers});
    EXPECT_GT(seen.asked, 0u);
    EXPECT_GT(seen.unasked, 0u);
    EXPECT_GT(seen.woken, 0u);
    EXPECT_GT(seen.nudges, 0u);
}

// 5.1.8.2, E1, E2, E3, E19: while the producer is idle, a sleeping consumer has everything.
TEST(Property, NobodySleepsOnAnEvent) {
    const Seen seen = hold({Profile::schedules, Profile::resizes});
    EXPECT_GT(seen.sleeps, 0u);
    EXPECT_GT(seen.woken, 0u);
}

Script without_pokes(Script script) {
    std::erase_if(script.operations,
                  [](const Operation& operation) { return operation.verb == Verb::poke; });
    return script;
}

// A script that interrupts an operation after some accesses would do so at another place: a wake is
// one more access. The same holds for an event that becomes corrupt. Therefore only pokes and the
// schedule remain in a started operation.
Script without_interrupts(Script script) {
    bool is_started = false;
    std::erase_if(script.operations, [&is_started](const Operation& operation) {
        if (operation.is_started) is_started = true;
        if (operation.verb == Verb::finish) is_started = false;
        const Actor actor = rule_of(operation.verb).actor;
        return is_started && !operation.is_started &&
               (actor == Actor::producer ||
                (actor == Actor::world && operation.verb != Verb::poke));
    });
    return script;
}

// E13: a consumer that writes to its page does not change the producer's state and actions, except
// for the wakes that it requests.
TEST(Property, HostileConsumerChangesNothingButItsOwnWakes) {
    Seen seen;
    const bool holds = rc::check([&seen] {
        const Script script = *rc::gen::map(scripts(Profile::hostile), without_interrupts);
        const PlayResult hostile = play(script);
        if (hostile.failure) RC_FAIL(describe(script, *hostile.failure));
        const Script unpoked = without_pokes(script);
        const PlayResult friendly = play(unpoked);
        if (friendly.failure) RC_FAIL(print_script(unpoked) + describe(unpoked, *friendly.failure));
        if (hostile.producer_digest != friendly.producer_digest)
            RC_FAIL(
                "the producer's state differs without the pokes; tools/kmes replay plays a script "
                "once, so repeat this test with the RC_PARAMS below");
        seen += hostile.seen;
    });
    EXPECT_TRUE(holds);
    EXPECT_GT(seen.pokes, 0u);
}

// E13: an impossible size in the ring empties the buffer, once, and is counted.
TEST(Property, CorruptSizeEmptiesTheBuffer) {
    Seen seen;
    // A sanitizer plays few scripts, and about one in thirty empties the buffer.
    for (int i = 0; i < 3 && seen.corrupt == 0; i++) seen += hold({Profile::hostile});
    EXPECT_GT(seen.corrupt, 0u);
}

}  // namespace
}  // namespace kmes::props
