// SPDX-License-Identifier: MIT
//
// The scenarios to explore. Each is short, and tests one thing that a consumer must get right in
// every interleaving. Knows the player, no search.
#ifndef KMES_CONFORMANCE_EXPLORER_SCENARIOS_H_
#define KMES_CONFORMANCE_EXPLORER_SCENARIOS_H_

#include <string_view>
#include <vector>

#include "conformance/play/player.h"

namespace kmes::conformance {

const std::vector<Scenario>& scenarios();
// Plays the testee from its start to its sleep, and continues while actions or moves are left.
void by_turns(Player& player);
// Returns nullptr if no scenario has this name.
const Scenario* find_scenario(std::string_view name);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_SCENARIOS_H_
