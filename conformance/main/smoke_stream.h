// SPDX-License-Identifier: MIT
//
// The stream of a smoke run: a handful of events on three CPUs, every kind of record once, played
// to one testee. Says what happened; the lines of the report are judged elsewhere (smoke_check.h).
#ifndef KMES_CONFORMANCE_MAIN_SMOKE_STREAM_H_
#define KMES_CONFORMANCE_MAIN_SMOKE_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/model/stop_flag.h"
#include "conformance/stage/rings.h"

namespace kmes::conformance {

inline constexpr std::uint32_t kSmokeCpus = 3;
inline constexpr std::uint64_t kSmokeCapacity = 65536;

struct SmokeSettings {
    std::vector<std::string> testee;
    double timeout_scale = 1.0;
    const StopFlag* stop = nullptr;
    // From 1 on. The buffer of the third CPU is to be refused.
    std::uint32_t cpus = kSmokeCpus;
    std::uint64_t capacity_bytes = kSmokeCapacity;
    // Only the first events and the end: whether anything works at all.
    bool is_brief = false;
};

struct SmokeRun {
    std::unique_ptr<Rings> rings;  // with the history of what was emitted
    std::string report;
    // How much of the report came while the suite waited for it: the rest came at the end.
    std::size_t in_time = std::string::npos;
    std::vector<std::string> problems;  // that no line of the report shows, one sentence each
    std::vector<std::string> facts;     // what was right on the way, for a person
    std::string suite_error;            // not empty: nothing is said about the testee
    // Not empty: why this run says nothing about the testee, as a full run would not.
    std::string inconclusive;
    bool cut_short = false;  // by time alone: what was written may be wrong all the same
    bool flooded = false;    // the report is its beginning, and cut anywhere
    std::string standard_output;
    std::string standard_error;
    bool to_the_end = false;  // the whole stream was played
    bool has_events = false;  // some line could be the record of one
    // Events were emitted after the consumer had mapped every buffer.
    bool has_emitted_to_reader = false;
    // The program could not be started or traced: no run could.
    bool is_not_startable = false;
    // LeakSanitizer or the like needs ptrace for itself: every run is inconclusive.
    bool needs_ptrace_itself = false;
};

// Ends within 12 s, times the scale, whatever the testee does. What the testee leaves is killed.
SmokeRun play_smoke_stream(const SmokeSettings& settings);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SMOKE_STREAM_H_
