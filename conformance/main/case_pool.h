// SPDX-License-Identifier: MIT
//
// Plays cases in several threads, and hands over their outcomes in the order of the cases. A thread
// of the runner traces one testee at a time, so two cases share nothing but the machine.
#ifndef KMES_CONFORMANCE_MAIN_CASE_POOL_H_
#define KMES_CONFORMANCE_MAIN_CASE_POOL_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "conformance/model/case.h"

namespace kmes::conformance {

// More threads than this gain nothing: the explored cases take most of the time, and use every
// processor by themselves.
inline constexpr unsigned kMostJobs = 8;

// One for each processor that this process may use, at most kMostJobs.
unsigned default_jobs();

struct PlayedCase {
    CaseOutcome outcome;
    double seconds = 0;
};

struct CasePoolCalls {
    // Plays one case. Called in the threads of the pool: several calls run at the same time, but
    // none beside a call for an explored case. `processor` is where runner and testee take turns;
    // -1: any. nullopt: a signal cut the case short. Throws nothing.
    std::function<std::optional<PlayedCase>(const Case&, int processor)> play;
    // In the thread that called play_cases, once for each case that ended, in the order of the
    // cases. False ends the run. It may throw; the exception leaves play_cases.
    std::function<bool(std::size_t index, PlayedCase&&)> take;
    // Before a case begins, in any thread: true if no further case is to begin.
    std::function<bool()> is_over;
    // In the thread that called play_cases, before it waits for case `index`.
    std::function<void(std::size_t index)> wait_for;
};

// Plays `cases` with `jobs` threads; with one job, in the caller's thread. After is_over, the
// outcomes of cases that had ended are still taken. Returns when no case is being played.
void play_cases(const std::vector<const Case*>& cases, unsigned jobs, const CasePoolCalls& calls);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_CASE_POOL_H_
