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
    "Whatever comes between two of its accesses, it delivers what survives, once and whole, and "
    "sleeps through nothing.";

// What is drawn at random, and has no end of its own.
void add_drawn_cases(std::vector<Case>& cases) {
    add(cases,
        {"5.1.8/explored-turns", Level::erratum, "5.1.8", "turns by priority (PCT)",
         "Two CPUs. The producer's deeds and the threads of the testee have priorities at random; "
         "the highest that can go on does, and at a few accesses the one that has just gone falls "
         "behind all others.",
         kExpectation, nullptr},
        "turns", 0.06);
    add(cases,
        {"5.1.8/explored-mixed", Level::erratum, "5.1.8", "interleavings of several moves",
         "Events, a lap, a resize, an event, with several actions of the producer between.",
         kExpectation, nullptr},
        "mixed", 0.06);
    cases.push_back(
        {"5.1.8/soak", Level::erratum, "5.1.8", "random everything",
         "CPUs, capacities, positions, sizes, what the producer does, when, and between "
         "which accesses: all at random, from one seed, for as long as --soak says.",
         kExpectation, [](Stage& stage) { return soak(stage.the_case(), stage.settings()); },
         Demand::soak});
}

}  // namespace

void add_explore_cases(std::vector<Case>& cases) {
    add(cases,
        {"5.1.8.1/explored-drain", Level::erratum, "5.1.8.1", "every interleaving: drain",
         "It attaches to a ring with three events, drains it and sleeps. Before each of its "
         "accesses the producer acts.",
         kExpectation, nullptr},
        "drain", 0.12);
    add(cases,
        {"5.1.8.2/explored-sleep", Level::erratum, "5.1.8.2", "every interleaving: sleep and wake",
         "It sleeps, is woken by an event, sleeps, and is woken by another. Before each of its "
         "accesses the producer acts.",
         kExpectation, nullptr},
        "wake", 0.15);
    add(cases,
        {"5.1.8.3/explored-resize", Level::erratum, "5.1.8.3", "every interleaving: resize",
         "Its buffer is swapped with two events unread in it. Before each of its accesses the "
         "producer acts.",
         kExpectation, nullptr},
        "resize", 0.15);
    add(cases,
        {"E20/explored-full-ring", Level::erratum, "E20", "every interleaving: a full ring",
         "It attaches to a ring full of large events. Before each of its accesses the producer "
         "acts.",
         kExpectation, nullptr},
        "full-ring", 0.06);
    add(cases,
        {"5.1.8.1-5/explored-tear", Level::erratum, "5.1.8.1-5", "torn at every word",
         "It drains three events of which one wraps. Before each 8-byte word that it reads of "
         "them, the buffer is overwritten; where the header was, sizes of every kind stand then.",
         "It never delivers a torn event, and uses no size that it has not checked.", nullptr},
        "tear", 0.1);
    add(cases,
        {"E20/explored-large-survivor", Level::erratum, "E20",
         "every interleaving: more than half of the buffer",
         "An event takes 5/8 of a buffer that was shrunk. Before each of its accesses the "
         "producer acts.",
         kExpectation, nullptr},
        "large-survivor", 0.05);
    add(cases,
        {"5.1.1/explored-two-cpus", Level::erratum, "5.1.1", "every interleaving: two CPUs",
         "Two CPUs with events, and a resize of both. Before each of its accesses a producer "
         "acts, or the thread is held while the others go on.",
         kExpectation, nullptr},
        "two-cpus", 0.1);
    add(cases,
        {"5.1.8.1-2/explored-burst", Level::erratum, "5.1.8.1-2", "every interleaving: a burst",
         "Six events come at once into a ring full of old ones. Before each of its accesses the "
         "producer acts, and the tail moves up to the event that it reads, or over it.",
         kExpectation, nullptr},
        "burst", 0.1);
    add(cases,
        {"5.1.1/explored-two-large", Level::erratum, "5.1.1", "threads held in large events",
         "Two CPUs with events of more than a page. A thread is held at each of its accesses "
         "while the others deliver events as large.",
         kExpectation, nullptr},
        "two-large", 0.05);
    add_drawn_cases(cases);
}

}  // namespace kmes::conformance
