// SPDX-License-Identifier: MIT
//
// The properties of producer and reader, each with its name and clause, over random scripts. All
// are checked at every access of every script (props/machine). A test here draws the scripts in
// which its property is most likely to break. It also fails if what the property is about never
// happened.
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

// Plays random scripts of these profiles. Returns what happened in all of them.
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

// E8: whatever a batch needs, tail_pos never passes what is published.
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

// The number of accesses decides whether an interrupt, or an event that becomes corrupt, falls into
// a started operation, and a wake is one more access. Therefore only pokes and the schedule come in
// between here.
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

// E13: a consumer that writes what it can at any time changes nothing of the producer's state and
// actions, except the wakes that it requests.
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

// E13: an impossible size in the ring empties the buffer, once, and is counted.
TEST(Property, CorruptSizeEmptiesTheBuffer) {
    const Seen seen = hold({Profile::hostile});
    EXPECT_GT(seen.corrupt, 0u);
}

}  // namespace
}  // namespace kmes::props
