// SPDX-License-Identifier: MIT
//
// The properties of producer and reader, each by its name with its clause, over random scripts. All
// of them are checked at every access of every script (props/machine); a test here draws the
// scripts in which its property is most likely to break, and fails, too, where what the property is
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

// Plays random scripts of these profiles, and says what was seen in all of them.
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

// 5.1.7 steps 7 and 8, 5.1.8.1: between tail_pos and write_pos there are whole events whenever
// anybody looks, and nothing is delivered that is torn or not yet published.
TEST(Property, PublicationShowsWholeEventsOnly) {
    const Seen seen = hold({Profile::schedules, Profile::batches});
    EXPECT_GT(seen.deliveries, 0u);
    EXPECT_GT(seen.torn, 0u);
}

// 5.1.4, 5.1.5, 5.1.6: every byte that the producer writes is its event's or its field's; a reader
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

// 5.1.9, E10: what is passed over is not there any more, and is counted to the event.
TEST(Property, LossIsExact) {
    const Seen seen = hold({Profile::readers, Profile::schedules});
    EXPECT_GT(seen.lost, 0u);
    EXPECT_GT(seen.laps, 0u);
    EXPECT_GT(seen.dropped, 0u);
}

// E8: whatever a batch needs, tail_pos stays behind what is published.
TEST(Property, TailIsNeverBeyondWhatIsPublished) {
    const Seen seen = hold({Profile::batches});
    EXPECT_GT(seen.published_early, 0u);
}

// E13, E23: however many tiny events are overwritten, few sizes are read back.
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

// 5.1.2, 5.1.7 steps 2 and 5, E16: no number is left out or given twice, over the boot hand-over,
// swaps, drops and interrupts.
TEST(Property, SequenceIsContinuous) {
    const Seen seen = hold({Profile::resizes, Profile::schedules});
    EXPECT_GT(seen.handovers, 0u);
    EXPECT_GT(seen.swaps, 0u);
    EXPECT_GT(seen.dropped, 0u);
    EXPECT_GT(seen.nested, 0u);
}

// 5.1.7 step 9, E1, E3: a wake where need_wake was set, and where a buffer was retired; no other.
TEST(Property, WakeComesExactlyWhenItIsAskedFor) {
    const Seen seen = hold({Profile::schedules, Profile::readers});
    EXPECT_GT(seen.asked, 0u);
    EXPECT_GT(seen.unasked, 0u);
    EXPECT_GT(seen.woken, 0u);
    EXPECT_GT(seen.nudges, 0u);
}

// 5.1.8.2, E1, E2, E3, E19: while the producer rests, who sleeps has had everything.
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

// Whether an interrupt, or an event that becomes corrupt, meets a started operation is a matter of
// how many accesses that has made, and a wake is an access more: so nothing but pokes and the
// schedule comes in between here.
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

// E13: a consumer that writes what it can, whenever it likes, changes nothing of what the producer
// has and does, but for the wakes that it asks for.
TEST(Property, HostileConsumerChangesNothingButItsOwnWakes) {
    Seen seen;
    const bool holds = rc::check([&seen] {
        const Script script = without_interrupts(*scripts(Profile::hostile));
        const PlayResult hostile = play(script);
        if (hostile.failure) RC_FAIL(describe(script, *hostile.failure));
        const PlayResult friendly = play(without_pokes(script));
        if (friendly.failure) RC_FAIL(describe(script, *friendly.failure));
        RC_ASSERT(hostile.producer_digest == friendly.producer_digest);
        seen += hostile.seen;
    });
    EXPECT_TRUE(holds);
    EXPECT_GT(seen.pokes, 0u);
}

// E13: a size in the ring that is impossible empties the buffer, once, and is counted.
TEST(Property, CorruptSizeEmptiesTheBuffer) {
    const Seen seen = hold({Profile::hostile});
    EXPECT_GT(seen.corrupt, 0u);
}

}  // namespace
}  // namespace kmes::props
