// SPDX-License-Identifier: MIT
//
// The plays that are explored: short, each with one thing that a consumer has to get right in every
// interleaving. Know the player, no search.
#ifndef KMES_CONFORMANCE_EXPLORER_SCENARIOS_H_
#define KMES_CONFORMANCE_EXPLORER_SCENARIOS_H_

#include <string_view>
#include <vector>

#include "conformance/play/player.h"

namespace kmes::conformance {

const std::vector<Scenario>& scenarios();
// Plays the testee from its start to its sleep, and on while there are actions or moves.
void by_turns(Player& player);
// nullptr: there is none of this name.
const Scenario* find_scenario(std::string_view name);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_SCENARIOS_H_
