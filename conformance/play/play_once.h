// SPDX-License-Identifier: MIT
//
// Plays a schedule once, in a process of its own. Also minimises and describes a failed schedule.
#ifndef KMES_CONFORMANCE_PLAY_PLAY_ONCE_H_
#define KMES_CONFORMANCE_PLAY_PLAY_ONCE_H_

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

// Returns the schedule itself; for a drawn one, the moves that it led to, which have the same
// effect.
Schedule in_moves(const Schedule& schedule, const PlayTrace& trace);

struct Failure {
    Schedule schedule;
    Schedule in_moves;
    CaseOutcome outcome;
};

// Describes the schedule in words, for a message.
std::string describe(const Schedule& schedule);

struct Confirmed {
    Schedule schedule;  // without the moves that the failure does not need
    CaseOutcome outcome;
    bool fails_again = false;  // false: the outcome is the first one
};

// Plays a failing schedule again: as moves, then with fewer of them, and finally with a full
// timeline. A failure that does not repeat is still a failure: the oracle has judged the run.
Confirmed confirm(const Failure& failure, const StageSettings& settings,
                  const std::function<Played(const StageSettings&, const Schedule&)>& play);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_PLAY_ONCE_H_
