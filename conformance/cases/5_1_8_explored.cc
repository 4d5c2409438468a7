// SPDX-License-Identifier: MIT
//
// Explored cases: every interleaving of a short play, in which the producer acts before each access
// of the testee to its buffers (conformance/explorer).
#include <fmt/format.h>

#include "conformance/cases/play.h"
#include "conformance/explorer/explore.h"
#include "conformance/explorer/scenarios.h"
#include "conformance/explorer/soak.h"

namespace kmes::conformance {

namespace {

using enum Level;

constexpr std::string_view kExpectation =
    "The consumer delivers every event that survives, once and whole, and never sleeps on one, "
    "whatever happens between two of its accesses.";

// The row of a scenario (explorer/scenarios.h). `share`: its part of the time of all explored
// cases.
Case explored_case(std::string_view id, std::string_view title, std::string_view description,
                   std::string_view scenario_name, double share,
                   std::string_view expectation = kExpectation) {
    const auto run = [=](Stage& stage) {
        const Scenario* scenario = find_scenario(scenario_name);
        if (scenario == nullptr) throw SuiteError(fmt::format("no scenario {}", scenario_name));
        return explore(stage.the_case(), stage.settings(), *scenario, share);
    };
    Case made{id, erratum, title, description, expectation, run, Demand::explored};
    made.explore_share = share;
    return made;
}

}  // namespace

const std::vector<Case> kExploredCases = {
    explored_case(
        "5.1.8.1/explored-drain", "every interleaving of a drain",
        "Let the consumer attach to a ring with three events, drain it and sleep. Let the "
        "producer act before each access of the consumer.",
        "drain", 0.12),
    explored_case(
        "5.1.8.2/explored-sleep", "every interleaving of sleep and wake",
        "Let the consumer sleep, wake it with an event, and repeat that once. Let the producer "
        "act before each access of the consumer.",
        "wake", 0.15),
    explored_case(
        "5.1.8.3/explored-resize", "every interleaving of a resize",
        "Replace the buffer with two unread events in it. Let the producer act before each "
        "access of the consumer.",
        "resize", 0.15),
    explored_case(
        "E20/explored-full-ring", "every interleaving with a full ring",
        "Let the consumer attach to a ring full of large events. Let the producer act before "
        "each access of the consumer.",
        "full-ring", 0.06),
    explored_case(
        "5.1.8.1-5/explored-overwrite", "an overwrite at every word",
        "Emit three events, of which one wraps. Overwrite the buffer before each 8-byte word that "
        "the consumer reads of them, with sizes of every kind in the place of the header.",
        "tear", 0.1,
        "The consumer never delivers a torn event, and uses no size that it has not checked."),
    explored_case(
        "E20/explored-large-survivor",
        "every interleaving with an event of more than half the buffer",
        "Shrink a buffer so that one event takes 5/8 of it. Let the producer act before each "
        "access of the consumer.",
        "large-survivor", 0.05),
    explored_case(
        "5.1.1/explored-two-cpus", "every interleaving of two CPUs",
        "Emit events on two CPUs and resize both. Before each access of the consumer, let a "
        "producer act, or hold the thread while the others continue.",
        "two-cpus", 0.1),
    explored_case(
        "5.1.8.1-2/explored-burst", "every interleaving of a burst",
        "Emit six events at once into a ring full of old ones. Before each access of the consumer, "
        "let the producer act, or move the tail up to or beyond the event that the consumer reads.",
        "burst", 0.1),
    explored_case(
        "5.1.1/explored-two-large", "threads held in large events",
        "Emit events of more than a page on two CPUs. Hold a thread at each of its accesses "
        "while the others deliver events as large.",
        "two-large", 0.05),
    // Random schedules, which do not end by themselves.
    explored_case(
        "5.1.8/explored-turns", "turns by priority (PCT)",
        "Serve two CPUs. Give the producer's actions and the consumer's threads random "
        "priorities, and run the runnable one with the highest. At a few accesses, give the "
        "current one the lowest priority.",
        "turns", 0.06),
    explored_case(
        "5.1.8/explored-mixed", "interleavings of several actions",
        "Emit events, lap, resize and emit an event, with several actions of the producer in "
        "between.",
        "mixed", 0.06),
    {"5.1.8/soak", erratum, "random plays",
     "Choose CPUs, capacities, positions, sizes, actions and the accesses between which they occur "
     "at random from one seed, for as long as --soak says.",
     kExpectation, [](Stage& stage) { return soak(stage.the_case(), stage.settings()); },
     Demand::soak},
};

}  // namespace kmes::conformance
