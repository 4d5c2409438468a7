// SPDX-License-Identifier: MIT
//
// Two consumers on one buffer (E12; --shared). The other consumer follows 5.1.8.2 literally, and
// the scheduler stopped it after its wake. When it continues, it clears need_wake (step 6) and so
// erases the request of the testee, which sleeps by then. The next event wakes neither. Therefore a
// consumer that may share its buffer sleeps with a timeout.
//
// In some cases the suite plays the other consumer on the page. In others it is a second instance
// of the testee's program, held after its wake before each of its accesses in turn.
#include "conformance/cases/play.h"
#include "conformance/play/instance_pair.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

using enum Level;
using enum Demand;

// Starts both, and leaves them asleep.
InstancePair started_pair(Stage& stage) {
    set_up_one_cpu(stage);
    stage.start();
    stage.wait_asleep();
    return InstancePair(stage);
}

CaseOutcome two_instances(Stage& stage) {
    constexpr std::uint64_t kAccessesAtMost = 40;  // the rest of a spin is left out
    InstancePair pair = started_pair(stage);
    for (std::uint64_t k = 1; k <= kAccessesAtMost && pair.hold_second_at(k); ++k) {
    }
    return pair.finish();
}

CaseOutcome two_instances_under_load(Stage& stage) {
    constexpr unsigned kBursts = 60;
    InstancePair pair = started_pair(stage);
    for (unsigned burst = 0; burst < kBursts; ++burst) pair.emit_burst();
    return pair.finish();
}

constexpr std::string_view kLimit =
    "The consumer never sleeps on a published event for ever. With other consumers on its buffer, "
    "it sleeps with a time limit.";
constexpr std::string_view kBoth =
    "The consumer delivers every event in both instances, and neither of them sleeps on one.";

const Row kSharedRows[] = {
    {{"E12/cleared-while-it-sleeps", erratum, "need_wake cleared by another consumer",
      "Let a second consumer of the buffer, stopped after its wake, clear need_wake while the "
      "first one sleeps. Then emit an event.",
      kLimit},
     {Asleep{}, Times{4,
                      // Both are woken; the other consumer gets no further. The testee drains, and
                      // sleeps again.
                      {Emit{}, AsleepHere{}, other_clears_need_wake(),
                       with_another_consumer(
                           "another consumer of the buffer cleared need_wake during the sleep, so "
                           "the producer woke nobody",
                           {Emit{}, DeliveredHere{}, AsleepHere{}})}}},
     kOneCpu,
     shared},
    {{"E12/cleared-at-every-step", erratum, "need_wake cleared by another consumer at every step",
      "Let a second consumer of the buffer clear need_wake before each access to the metadata page "
      "in turn. Then emit an event.",
      kLimit},
     {Asleep{}, with_another_consumer("another consumer of the buffer cleared need_wake before the "
                                      "sleep, so the producer woke nobody",
                                      {BeforeEachAccess{{other_clears_need_wake()}}})},
     kOneCpu,
     shared},
    {{"E12/set-at-every-step", erratum, "need_wake set by another consumer at every step",
      "Let a second consumer of the buffer set need_wake before each access to the metadata page "
      "in turn.",
      "The consumer tolerates a spurious wake and sleeps again."},
     // The other consumer had a spurious wake and sets need_wake again. The flag is 1 although the
     // testee is awake, and the testee clears it. That is harmless for the testee itself.
     {Asleep{}, BeforeEachAccess{{other_sets_need_wake()}}},
     kOneCpu,
     shared},
    {{"E12/two-instances", erratum, "two instances of the program, one stalled after its wake",
      "Start the program once more on the same buffer and wake both. Hold the second one before "
      "each of its accesses to the metadata page in turn, until the first has drained and sleeps "
      "again. Then emit an event.",
      kBoth},
     two_instances,
     shared},
    {{"E12/two-instances-under-load", erratum, "two instances of the program under load",
      "Start the program once more on the same buffer. Emit events while both drain and go to "
      "sleep.",
      kBoth},
     two_instances_under_load,
     shared},
};

}  // namespace

const std::vector<Case> kSharedCases = cases_of(kSharedRows);

}  // namespace kmes::conformance
