// SPDX-License-Identifier: MIT
//
// The command behind `tools/kmes replay`: reads scripts, has them played, and prints the result.
// The caller provides the player, so that a test can replace the core by one with a mistake.
#ifndef KMES_PROPS_REPLAY_REPLAY_H_
#define KMES_PROPS_REPLAY_REPLAY_H_

#include <functional>
#include <istream>
#include <ostream>
#include <string>
#include <vector>

#include "props/machine/play.h"

namespace kmes::props {

using Player = std::function<PlayResult(const Script&, const PlayOptions&)>;

// Exit statuses. If several files have different ones, the highest counts.
enum ReplayStatus {
    kReplayPassed = 0,
    kReplayFailed = 1,      // a property is broken
    kReplayBadScript = 2,   // or bad usage
    kReplayUnreadable = 3,  // a file cannot be read, or the output cannot be written
};

// `arguments` exclude the name of the program; `-` reads from `in`.
int replay(const std::vector<std::string>& arguments, const Player& player, std::istream& in,
           std::ostream& out, std::ostream& err);

}  // namespace kmes::props

#endif  // KMES_PROPS_REPLAY_REPLAY_H_
