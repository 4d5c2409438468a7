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

// A count of Seen, and its name.
struct Count {
    const char* name;
    std::uint64_t Seen::* value;
};

bool is_each_above_zero(const Seen& seen, const std::vector<Count>& counts) {
    return std::all_of(counts.begin(), counts.end(),
                       [&seen](const Count& count) { return seen.*count.value > 0; });
}

// Plays random scripts of these profiles, in further rounds while one of the counts is zero: few
// scripts show a rare event, and a sanitizer plays few. Fails if a script fails, or a count stays
// zero. Returns the sum of the counts.
Seen hold(const std::vector<Profile>& profiles, const std::vector<Count>& counts) {
    static constexpr int kMostRounds = 20;
    Seen seen;
    for (int round = 0; round < kMostRounds; round++) {
        for (const Profile profile : profiles) {
            const bool holds = rc::check([&seen, profile, round] {
                // One seed gives the same values at the same places, so a later round draws its
                // script at a later place.
                for (int place = 0; place < round; place++) *rc::gen::arbitrary<bool>();
                const Script script = *scripts(profile);
                const PlayResult result = play(script);
                if (result.failure) RC_FAIL(describe(script, *result.failure));
                seen += result.seen;
            });
            EXPECT_TRUE(holds);
        }
        if (testing::Test::HasFailure() || is_each_above_zero(seen, counts)) break;
    }
    for (const Count& count : counts) EXPECT_GT(seen.*count.value, 0u) << count.name;
    return seen;
}

// 5.1.7 steps 7 and 8, 5.1.8.1: at any time whole events fill the bytes between tail_pos and
// write_pos. No consumer delivers a torn or unpublished event.
TEST(Property, PublicationShowsWholeEventsOnly) {
    hold({Profile::schedules, Profile::batches},
         {{"deliveries", &Seen::deliveries}, {"torn", &Seen::torn}});
}

// 5.1.4, 5.1.5, 5.1.6: the producer writes only bytes of its event or of its fields, and a reader
// stays in its mapping.
TEST(Property, ContainmentHoldsForEveryAccess) {
    hold({Profile::anything, Profile::readers},
         {{"crossed_end", &Seen::crossed_end}, {"overwritten", &Seen::overwritten}});
}

// 5.1.8.1, 5.1.9, E21: each consumer gets rising numbers, each once.
TEST(Property, OrderIsThatOfTheSequenceNumbers) {
    hold({Profile::readers, Profile::resizes},
         {{"deliveries", &Seen::deliveries}, {"switches", &Seen::switches}});
}

// 5.1.9, E10: events that are passed over no longer exist, and are counted exactly.
TEST(Property, LossIsExact) {
    hold({Profile::readers, Profile::schedules},
         {{"lost", &Seen::lost}, {"laps", &Seen::laps}, {"dropped", &Seen::dropped}});
}

// E8: whatever a batch needs, tail_pos never passes the published write_pos.
TEST(Property, TailIsNeverBeyondWhatIsPublished) {
    hold({Profile::batches}, {{"published_early", &Seen::published_early}});
}

// E13, E23: however many small events are overwritten, few sizes are read back.
TEST(Property, WalkIsBounded) {
    const Seen seen = hold({Profile::anything, Profile::batches}, {});
    EXPECT_GT(seen.sizes, 1u);
}

// 5.1.8.4, E10, E11, E18: the longest suffix of whole events that fits, whole and in order.
TEST(Property, ResizeKeepsTheNewestSuffix) {
    hold({Profile::resizes}, {{"swaps", &Seen::swaps}, {"left_behind", &Seen::left_behind}});
}

// 5.1.2, 5.1.7 steps 2 and 5, E16: no number is skipped or assigned twice, over the boot hand-over,
// swaps, drops and interrupts.
TEST(Property, SequenceIsContinuous) {
    hold({Profile::resizes, Profile::schedules}, {{"handovers", &Seen::handovers},
                                                  {"swaps", &Seen::swaps},
                                                  {"dropped", &Seen::dropped},
                                                  {"nested", &Seen::nested}});
}

// 5.1.7 step 9, E1, E3: a wake happens if need_wake was set, or a buffer was retired, and only
// then.
TEST(Property, WakeComesExactlyWhenItIsAskedFor) {
    hold({Profile::schedules, Profile::readers}, {{"asked", &Seen::asked},
                                                  {"unasked", &Seen::unasked},
                                                  {"woken", &Seen::woken},
                                                  {"nudges", &Seen::nudges}});
}

// 5.1.8.2, E1, E2, E3, E19: while the producer is idle, a sleeping consumer has everything.
TEST(Property, NobodySleepsOnAnEvent) {
    hold({Profile::schedules, Profile::resizes},
         {{"sleeps", &Seen::sleeps}, {"woken", &Seen::woken}});
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
    hold({Profile::hostile}, {{"corrupt", &Seen::corrupt}});
}

}  // namespace
}  // namespace kmes::props
