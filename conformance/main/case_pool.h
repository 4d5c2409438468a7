// SPDX-License-Identifier: MIT
//
// Plays cases in several threads, and returns their outcomes in the order of the cases. A thread of
// the runner traces one testee at a time, so two cases share only the machine.
#ifndef KMES_CONFORMANCE_MAIN_CASE_POOL_H_
#define KMES_CONFORMANCE_MAIN_CASE_POOL_H_

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "conformance/model/case.h"

namespace kmes::conformance {

// More threads gain nothing: the explored cases take most of the time, and each uses all
// processors.
inline constexpr unsigned kMostJobs = 8;

// Returns the number of processors that this process may use, at most kMostJobs.
unsigned default_jobs();

struct PlayedCase {
    CaseOutcome outcome;
    double seconds = 0;
};

struct CasePoolCalls {
    // Plays one case in a thread of the pool. Several calls run at the same time, but an explored
    // case runs alone. `processor`: where runner and testee take turns; -1: any. Returns nullopt if
    // a signal ended the case early. Must not throw.
    std::function<std::optional<PlayedCase>(const Case&, int processor)> play;
    // Takes the outcome of each case that ended, in the order of the cases, in the thread that
    // called play_cases. Returns false to end the run. An exception leaves play_cases.
    std::function<bool(std::size_t index, PlayedCase&&)> take;
    // Called in any thread before a case begins. Returns true if no further case shall begin.
    std::function<bool()> is_over;
    // Called in the thread that called play_cases before it waits for case `index`.
    std::function<void(std::size_t index)> wait_for;
};

// Plays `cases` with `jobs` threads; with one job, in the caller's thread. Cases that ended before
// is_over returned true are still taken. Returns when no case is running.
void play_cases(const std::vector<const Case*>& cases, unsigned jobs, const CasePoolCalls& calls);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_CASE_POOL_H_
