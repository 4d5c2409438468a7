// SPDX-License-Identifier: MIT
//
// Runs a mix: a producer (kmes/user) with its emitters, resizes and nudges, and readers, each with
// a thread of its own, as shipped. Every delivered event is checked, at the end all are counted,
// and no reader may sleep on an event.
//
// A run has rounds. When the producer is idle after one, every reader must reach the event that
// ends it. A reader that sleeps instead, on a word that still has the expected value, is reported
// at once: no thread is left to wake it. If a reader does not arrive for another reason, it is
// reported after a limit that no machine should need.
#ifndef KMES_PROPS_THREADS_WORLD_H_
#define KMES_PROPS_THREADS_WORLD_H_

#include <cstdint>
#include <string>

#include "props/threads/mix.h"

namespace kmes::props {

// The check that found the failure.
enum class Finder {
    kNobody,
    kPayloadCheck,  // an event differs from its description, or a count is wrong
    kSleepCheck,    // a reader that sleeps on an event
    kTsan,          // a report, which ends the process
};

struct RunResult {
    Finder finder = Finder::kNobody;
    std::string error;  // one line
    std::uint64_t events = 0;
    std::uint64_t delivered = 0;  // by all readers
    std::uint64_t lost = 0;
    std::uint64_t torn = 0;
    std::uint64_t laps = 0;
    std::uint64_t switches = 0;
    std::uint64_t sleeps = 0;

    void add(const RunResult& other);
};

RunResult run_mix(const Mix& mix);

// "12 runs: 4000 events, 7000 deliveries, ..."
std::string print_counts(std::uint64_t runs, const RunResult& sum);

}  // namespace kmes::props

#endif  // KMES_PROPS_THREADS_WORLD_H_
