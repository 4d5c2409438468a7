// SPDX-License-Identifier: MIT
//
// Runs a mix: a producer (kmes/user) with its emitters, resizes and nudges, and readers, all with
// threads of their own, as they ship. What was delivered is checked event by event and counted to
// the last one at the end, and nobody may sleep on an event.
//
// A run has rounds. When the producer is at rest after one, every reader must come to the event
// that ends it. One that is asleep instead, on a word that has still the value which it sleeps on,
// is told at once: nobody is left who would wake it. Whoever does not come for another reason is
// told after a limit that no machine should need.
#ifndef KMES_PROPS_THREADS_WORLD_H_
#define KMES_PROPS_THREADS_WORLD_H_

#include <cstdint>
#include <string>

#include "props/threads/mix.h"

namespace kmes::props {

// Who found it.
enum class Finder {
    kNobody,
    kPayloadCheck,  // an event that is not what it says, or a count that is not exact
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
