// SPDX-License-Identifier: MIT
//
// See scenarios.h.
#include "conformance/explorer/scenarios.h"

namespace kmes::conformance {

namespace {

constexpr std::uint64_t kSmall = 65536;
constexpr std::uint64_t kMiddle = 131072;

// Attach, drain the existing events, sleep.
void drain(Player& player) {
    player.emit(0, 40);
    player.emit(0, 333, "some.type");
    player.emit(0, 96);
    player.start();
    player.settle();
}

// Sleep, wake by an event, sleep again; twice, because a consumer may keep state from the first
// time.
void wake(Player& player) {
    player.start();
    player.settle();
    player.emit(0, 64);
    player.settle();
    player.emit(0, 52);
    player.settle();
}

// A resize with unread events in the old buffer, and one in the new.
void resize(Player& player) {
    player.emit(0, 80);
    player.start();
    player.settle();
    player.stage().holding().freeze();
    player.emit(0, 48);
    player.emit(0, 120);
    player.resize_all(kMiddle);
    player.emit(0, 56);
    player.stage().holding().thaw();
    player.settle();
    player.emit(0, 44);
    player.settle();
}

// The ring is full when the testee attaches, so every new event overwrites another.
void full_ring(Player& player) {
    for (int i = 0; i < 9; ++i) player.emit(0, kSmall / 8);
    player.start();
    player.settle();
}

// Events to be torn: a short one, one that wraps (5.1.4), and one in the middle.
void tear(Player& player) {
    player.emit(0, 61, "a.type");
    player.emit(0, 430);
    player.emit(0, 200);
    player.start();
    player.settle();
}

// A large event survives a shrink and takes more than half of the buffer (E7, E20).
void large_survivor(Player& player) {
    player.emit(0, kSmall / 8 * 5);
    player.resize_all(kSmall);
    player.start();
    player.settle();
    player.emit(0, 60);
    player.settle();
}

// Two CPUs, whose consumers may wrongly share state.
void two_cpus(Player& player) {
    player.emit(0, 70);
    player.emit(1, 90);
    player.start();
    player.settle();
    player.emit(0, 70);
    player.emit(1, 64);
    player.settle();
    player.resize_all(kMiddle);
    player.emit(1, 58);
    player.settle();
}

// A ring full of events read long ago, and then a burst: the tail next gives up unread events.
void burst(Player& player) {
    for (int i = 0; i < 15; ++i) player.emit(0, kSmall / 16);
    player.start();
    player.settle();
    player.stage().holding().freeze();
    for (int i = 0; i < 6; ++i) player.emit(0, 100 + 8 * static_cast<std::uint64_t>(i));
    player.stage().holding().thaw();
    player.settle();
}

// Events of more than a page on both CPUs: consumers that share one copy buffer mix them up.
void two_large(Player& player) {
    player.start();
    player.settle();
    for (int i = 0; i < 2; ++i) {
        player.emit(0, 5000);
        player.emit(1, 5200);
        player.settle();
    }
}

// A little of everything, for schedules with several moves.
void mixed(Player& player) {
    player.emit(0, 70);
    player.start();
    player.settle();
    player.emit(0, 300);
    player.emit(0, 45);
    player.settle();
    player.stage().holding().freeze();
    for (int i = 0; i < 18; ++i) player.emit(0, 8000);
    player.stage().holding().thaw();
    player.settle();
    player.resize_all(2 * kMiddle);
    player.settle();
    player.emit(0, 64);
    player.settle();
}

void turns(Player& player) {
    player.emit(0, 70);
    by_turns(player);
}

std::vector<Scenario> make_scenarios() {
    std::vector<Scenario> all;
    const auto add = [&all](std::string_view name, std::string_view description,
                            void (*run)(Player&)) -> Scenario& {
        Scenario scenario;
        scenario.name = name;
        scenario.description = description;
        scenario.run = run;
        all.push_back(scenario);
        return all.back();
    };
    add("drain", "the consumer attaches to a ring with three events, drains it and sleeps", drain)
        .guards_data = true;
    Scenario& woken =
        add("wake", "the consumer sleeps, is woken by one event, sleeps, and is woken by another",
            wake);
    woken.first_explored_phase = 1;
    woken.guards_data = true;
    Scenario& resized = add("resize", "the buffer is swapped with two unread events in it", resize);
    resized.first_explored_phase = 1;
    resized.guards_data = true;
    resized.swaps = 1;
    add("full-ring", "the consumer attaches to a ring full of large events", full_ring)
        .capacity_bytes = kSmall;
    Scenario& torn = add("tear", "the consumer drains three events, of which one wraps", tear);
    torn.tears = torn.guards_data = true;
    torn.start_position = kMiddle - 240;
    Scenario& large =
        add("large-survivor", "an event fills most of a shrunk buffer", large_survivor);
    large.capacity_bytes = 4 * kSmall;
    Scenario& two = add("two-cpus", "two CPUs, and a resize of both", two_cpus);
    two.cpus = 2;
    two.guards_data = true;
    two.swaps = 1;
    Scenario& bursts =
        add("burst", "six events are published at once in a ring full of old ones", burst);
    bursts.capacity_bytes = kSmall;
    bursts.first_explored_phase = 1;
    bursts.guards_data = true;
    Scenario& large_two = add("two-large", "two CPUs with events of more than a page", two_large);
    large_two.cpus = 2;
    large_two.first_explored_phase = 1;
    large_two.guards_data = true;
    large_two.holds_with_bytes = 5100;
    Scenario& turned = add("turns", "two CPUs, and actions of the producer by priority", turns);
    turned.cpus = 2;
    turned.capacity_bytes = kSmall;
    turned.turning = Turning::by_priority;
    // Enough swaps that a retired buffer is always nudged.
    turned.swaps = 2;
    add("mixed", "events, a lap, a resize, an event", mixed).swaps = 1;
    return all;
}

}  // namespace

void by_turns(Player& player) {
    player.start();
    player.settle();
    while (player.perform_next()) player.settle();
}

const std::vector<Scenario>& scenarios() {
    static const std::vector<Scenario> all = make_scenarios();
    return all;
}

const Scenario* find_scenario(std::string_view name) {
    for (const Scenario& scenario : scenarios()) {
        if (scenario.name == name) return &scenario;
    }
    return nullptr;
}

}  // namespace kmes::conformance
