// SPDX-License-Identifier: MIT
//
// The mistakes of switched_consumer.c. For each: the clauses that a verdict may name, and the cases
// that show it. Also the choices with which it is no mistake, or an invisible one, with the reason.
#include "props/suite/switches.h"

namespace kmes::props::suite {
namespace {

// If a sleeper has a timeout, a lost wake-up only delays it. The contract permits timeouts of up to
// 100 ms, so the suite cannot blame the consumer.
const Need kNoLimit{"limit", {"none"}, "with a time limit it is late, and not lost"};
// A bulk copy is parsed only if the check has found it whole.
const Need kNoBulk{"copy", {"event", "place"}, "no size is read before the check"};

std::vector<Mistake> sleeping() {
    return {
        {"no-barrier",
         {"E1"},
         {"E1/full-barrier"},
         {kNoLimit,
          {"spin", {"0", "1", "7"}, "no processor holds a store back for that many loads"},
          {"clear", {"yes"}, "who never clears the flag stores it once, before the first sleep"}}},
        {"counter-after-recheck", {"5.1.8.2-2", "E2"}, {"E2/event-at-every-step"}, {kNoLimit}},
        {"counter-read-once", {"5.1.8.2-3", "5.1.8.2-5"}, {"5.1.8.2-5/sleeps-and-wakes"}, {}},
        {"no-write-pos-recheck", {"5.1.8.2-2"}, {"E2/event-at-every-step"}, {kNoLimit}},
        {"no-generation-recheck", {"E3"}, {"E3/swap-at-every-step"}, {kNoLimit}},
        {"flag-after-recheck", {"5.1.8.2-2", "E2"}, {"E2/event-at-every-step"}, {kNoLimit}},
        {"never-asks",
         {"5.1.8.2-1", "5.1.8.2-2"},
         {"5.1.8.2-5/sleeps-and-wakes", "5.1.8.2-1/asks-to-be-woken"},
         {kNoLimit}},
        {"flag-is-two", {"5.1.6.3"}, {"5.1.8.2-5/sleeps-and-wakes"}, {}},
        {"clears-before-it-sleeps",
         {"5.1.8.2-1", "5.1.8.2-2"},
         {"5.1.8.2-5/sleeps-and-wakes", "5.1.8.2-1/asks-to-be-woken"},
         {kNoLimit}},
        {"private-futex", {"E17"}, {"E17/shared-futex"}, {}},
        {"eintr-is-the-end", {"5.1.8.2-5"}, {"5.1.8.2-5/waits-that-return-eintr"}, {}},
        {"eagain-is-the-end", {"5.1.8.2-5"}, {"E2/event-at-the-futex-wait"}, {}},
        {"polls", {"5.1.8.2-5"}, {"5.1.8.2-5/sleeps-and-wakes"}, {}},
        {"reports-late",
         {"5.1.8.1-6", "5.1.8.2-2"},
         {"5.1.8.2-5/sleeps-and-wakes"},
         {kNoLimit, {"write", {"drain"}, "it writes before it can be late"}}},
    };
}

std::vector<Mistake> reading() {
    return {
        {"no-tail-recheck",
         {"5.1.8.1-5", "E7"},
         {"5.1.8.1-5/torn-in-the-middle", "5.1.8.1-5/torn-at-the-end"},
         {}},
        {"tail-check-before-the-copy",
         {"5.1.8.1-5", "E7"},
         {"5.1.8.1-5/torn-in-the-middle", "5.1.8.1-5/torn-at-the-end"},
         {}},
        {"works-in-place-after-the-check",
         {"5.1.8.1-5", "E6"},
         {"5.1.8.1-5/torn-in-the-middle"},
         {{"copy", {"event"}, "it is a mistake about the copy of one event"}}},
        {"no-bounds-check",
         {"E7"},
         {"E7/torn-header-of-large-sizes", "E7/torn-header-of-mixed-sizes"},
         {kNoBulk}},
        {"torn-is-corrupt", {"E7"}, {"E7/torn-header-of-large-sizes"}, {kNoBulk}},
        {"reads-on-after-a-lap",
         // It also compares with ==: past write_pos it reads anything, or sleeps on events.
         {"5.1.8.1-1", "5.1.8.1-5", "5.1.8.2-2", "E20", "contract"},
         {"E20/tail-reaches-write-pos"},
         {{"copy", {"event", "place"}, "the length of a bulk copy takes another load of write_pos"},
          {"scan",
           {"drain"},
           "a scan of its own passes the large survivor of the case, and loads again each time"}}},
        {"no-lap-check",
         {"contract", "contract-2", "5.1.8.1-2", "5.1.8.1-6"},
         {"5.1.8.1-2/lapped-by-one-event", "5.1.8.1-2/lapped-by-small-events"},
         {kNoBulk}},
        {"lapped-moves-to-write-pos",
         {"5.1.8.2-2", "5.1.8.1-2"},
         {"5.1.8.1-2/lapped-moves-to-tail"},
         {}},
        {"half-the-capacity-at-most", {"E7"}, {"E7/event-larger-than-half"}, {}},
        {"payload-after-the-type", {"event-model"}, {"event-model/longer-header"}, {}},
        {"skips-an-event-at-the-wrap",
         {"5.1.8.2-2", "5.1.8.1-1", "5.1.8.1-6"},
         {"5.1.4/wrap-at-every-byte"},
         {}},
        {"positions-of-32-bits",
         {"5.1.6.2", "contract"},
         {"5.1.6.2/positions-beyond-32-bits", "5.1.6.2/positions-beyond-63-bits"},
         {}},
        {"one-event-per-check", {"5.1.8.2-2"}, {"5.1.7/batches"}, {}},
        {"begins-at-write-pos", {"E11", "5.1.8.2-2"}, {"E11/begins-at-tail-pos"}, {}},
        {"loss-count-one-too-high", {"5.1.9"}, {"5.1.9/gap-of-dropped-events"}, {}},
        {"drops-after-a-gap",
         {"5.1.8.2-2", "5.1.8.1-1", "5.1.8.1-2", "5.1.8.1-6"},
         {"5.1.9/gap-of-dropped-events"},
         {}},
        {"goes-on-after-the-end", {"contract-4"}, {"contract-4/nothing-after-the-end"}, {}},
        {"moves-tail-pos", {"5.1.6.2"}, {"5.1.8.1-6/drain"}, {}},
    };
}

std::vector<Mistake> changing() {
    return {
        {"leaves-the-old-buffer",
         {"E10"},
         {"E10/unread-in-the-old-buffer"},
         {{"ask", {"before"}, "who asks after a drain has drained"}}},
        {"asks-for-generation-last", {"E10"}, {"E24/swap-at-every-step"}, {}},
        {"caches-generation", {"E3", "5.1.8.3"}, {"5.1.8.3/grow", "E19/nudged"}, {}},
        {"generation-plus-one", {"E3", "E15", "5.1.8.3"}, {"E15/two-swaps-at-once"}, {}},
        {"delivers-survivors-again", {"E21"}, {"5.1.8.3-5/no-event-twice"}, {}},
        {"last-sequence-of-one-buffer", {"E21"}, {"E21/swaps-without-events-between"}, {}},
        {"skips-the-new-buffer",
         {"5.1.8.2-2", "5.1.8.3-5"},
         {"E15/two-swaps-at-once", "E21/lapped-over-a-swap"},
         {}},
        {"keeps-its-position", {"E11", "5.1.8.2-2"}, {"E11/positions-begin-at-zero"}, {}},
        {"leaks-buffers", {"5.1.8.3-6"}, {"5.1.8.3-6/closes-retired-buffers"}, {}},
        {"silent-about-generations", {"contract-records"}, {"5.1.8.3/grow"}, {}},
    };
}

}  // namespace

const std::vector<Mistake>& mistakes() {
    static const std::vector<Mistake> all = [] {
        std::vector<Mistake> made = sleeping();
        for (const Mistake& each : reading()) made.push_back(each);
        for (const Mistake& each : changing()) made.push_back(each);
        return made;
    }();
    return all;
}

}  // namespace kmes::props::suite
