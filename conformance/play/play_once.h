// SPDX-License-Identifier: MIT
//
// One play of a schedule, in a process of its own; and one that has failed, made smaller and told.
#ifndef KMES_CONFORMANCE_EXPLORER_PLAY_ONCE_H_
#define KMES_CONFORMANCE_EXPLORER_PLAY_ONCE_H_

#include <functional>
#include <string>

#include "conformance/model/case.h"
#include "conformance/model/settings.h"
#include "conformance/play/player.h"

namespace kmes::conformance {

struct Played {
    CaseOutcome outcome;
    PlayTrace trace;
};

Played play_once(const Case& the_case, const StageSettings& settings, const Scenario& scenario,
                 const Schedule& schedule, Course course = Course::whole);

// The schedule itself; of one that was drawn, the moves that it came to, which do the same.
Schedule in_moves(const Schedule& schedule, const PlayTrace& trace);

struct Failure {
    Schedule schedule;
    Schedule in_moves;
    CaseOutcome outcome;
};

// In words, for a message.
std::string describe(const Schedule& schedule);

struct Confirmed {
    Schedule schedule;  // with moves that it does not need left out
    CaseOutcome outcome;
    bool fails_again = false;  // else the outcome is the first one
};

// Plays a failing schedule again: in moves, with fewer of them, and the last time with everything
// told. Once is a failure all the same: the oracle has judged what happened.
Confirmed confirm(const Failure& failure, const StageSettings& settings,
                  const std::function<Played(const StageSettings&, const Schedule&)>& play);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_EXPLORER_PLAY_ONCE_H_
