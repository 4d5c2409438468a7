// SPDX-License-Identifier: MIT
//
// Explored cases: every interleaving of a short play, with the producer acting at each access of
// the testee to its buffers (conformance/explorer).
#include <fmt/format.h>

#include "conformance/cases/play.h"
#include "conformance/explorer/explore.h"
#include "conformance/explorer/scenarios.h"
#include "conformance/explorer/soak.h"

namespace kmes::conformance {

namespace {

void add(std::vector<Case>& cases, Case what, std::string_view scenario_name, double share) {
    what.demand = Demand::explored;
    what.explore_share = share;
    what.run = [scenario_name, share](Stage& stage) {
        const Scenario* scenario = find_scenario(scenario_name);
        if (scenario == nullptr) throw SuiteError(fmt::format("no scenario {}", scenario_name));
        return explore(stage.the_case(), stage.settings(), *scenario, share);
    };
    cases.push_back(std::move(what));
}

constexpr std::string_view kExpectation =
    "The consumer delivers every event that survives, once and whole, and never sleeps on one, "
    "whatever happens between two of its accesses.";

// What is drawn at random, and has no end of its own.
void add_drawn_cases(std::vector<Case>& cases) {
    add(cases,
        {"5.1.8/explored-turns", Level::erratum, "5.1.8", "turns by priority (PCT)",
         "Serve two CPUs. Give the producer's actions and the consumer's threads random "
         "priorities, and run the runnable one with the highest. At a few accesses, give the "
         "current one the lowest priority.",
         kExpectation, nullptr},
        "turns", 0.06);
    add(cases,
        {"5.1.8/explored-mixed", Level::erratum, "5.1.8", "interleavings of several actions",
         "Emit events, lap, resize and emit an event, with several actions of the producer in "
         "between.",
         kExpectation, nullptr},
        "mixed", 0.06);
    cases.push_back({"5.1.8/soak", Level::erratum, "5.1.8", "random plays",
                     "Choose CPUs, capacities, positions, sizes, actions and the accesses between "
                     "which they occur at random from one seed, for as long as --soak says.",
                     kExpectation,
                     [](Stage& stage) { return soak(stage.the_case(), stage.settings()); },
                     Demand::soak});
}

}  // namespace

void add_explore_cases(std::vector<Case>& cases) {
    add(cases,
        {"5.1.8.1/explored-drain", Level::erratum, "5.1.8.1", "every interleaving of a drain",
         "Let the consumer attach to a ring with three events, drain it and sleep. Let the "
         "producer act before each access of the consumer.",
         kExpectation, nullptr},
        "drain", 0.12);
    add(cases,
        {"5.1.8.2/explored-sleep", Level::erratum, "5.1.8.2",
         "every interleaving of sleep and wake",
         "Let the consumer sleep, wake it with an event, and repeat that once. Let the producer "
         "act before each access of the consumer.",
         kExpectation, nullptr},
        "wake", 0.15);
    add(cases,
        {"5.1.8.3/explored-resize", Level::erratum, "5.1.8.3", "every interleaving of a resize",
         "Replace the buffer with two unread events in it. Let the producer act before each access "
         "of the consumer.",
         kExpectation, nullptr},
        "resize", 0.15);
    add(cases,
        {"E20/explored-full-ring", Level::erratum, "E20", "every interleaving with a full ring",
         "Let the consumer attach to a ring full of large events. Let the producer act before each "
         "access of the consumer.",
         kExpectation, nullptr},
        "full-ring", 0.06);
    add(cases,
        {"5.1.8.1-5/explored-tear", Level::erratum, "5.1.8.1-5", "an overwrite at every word",
         "Emit three events, of which one wraps. Overwrite the buffer before each 8-byte word that "
         "the consumer reads of them, with sizes of every kind in the place of the header.",
         "The consumer never delivers a torn event, and uses no size that it has not checked.",
         nullptr},
        "tear", 0.1);
    add(cases,
        {"E20/explored-large-survivor", Level::erratum, "E20",
         "every interleaving with an event of more than half the buffer",
         "Shrink a buffer so that one event takes 5/8 of it. Let the producer act before each "
         "access of the consumer.",
         kExpectation, nullptr},
        "large-survivor", 0.05);
    add(cases,
        {"5.1.1/explored-two-cpus", Level::erratum, "5.1.1", "every interleaving of two CPUs",
         "Emit events on two CPUs and resize both. Before each access of the consumer, let a "
         "producer act, or hold the thread while the others continue.",
         kExpectation, nullptr},
        "two-cpus", 0.1);
    add(cases,
        {"5.1.8.1-2/explored-burst", Level::erratum, "5.1.8.1-2", "every interleaving of a burst",
         "Emit six events at once into a ring full of old ones. Before each access of the "
         "consumer, let the producer act, or move the tail up to or beyond the event that the "
         "consumer reads.",
         kExpectation, nullptr},
        "burst", 0.1);
    add(cases,
        {"5.1.1/explored-two-large", Level::erratum, "5.1.1", "threads held in large events",
         "Emit events of more than a page on two CPUs. Hold a thread at each of its accesses while "
         "the others deliver events as large.",
         kExpectation, nullptr},
        "two-large", 0.05);
    add_drawn_cases(cases);
}

}  // namespace kmes::conformance
