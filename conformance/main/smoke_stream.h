// SPDX-License-Identifier: MIT
//
// The stream of a smoke run: a few events on three CPUs, and every kind of record once, played to
// one testee. Records what happened; smoke_check.h judges the lines of the report.
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
    // At least 1. The consumer should refuse the buffer of the third CPU.
    std::uint32_t cpus = kSmokeCpus;
    std::uint64_t capacity_bytes = kSmokeCapacity;
    // Play only the first events and the end, to see whether anything works at all.
    bool is_brief = false;
};

struct SmokeRun {
    std::unique_ptr<Rings> rings;  // with the history of what was emitted
    std::string report;
    // The length of the report that came while the suite waited for it; the rest came at the end.
    std::size_t in_time = std::string::npos;
    std::vector<std::string> problems;  // one sentence each, about what no line of the report shows
    std::vector<std::string> facts;     // what was correct so far, for a person
    std::string suite_error;            // if not empty, the run says nothing about the testee
    // If not empty: why this run says nothing about the testee. A full run would not either.
    std::string inconclusive;
    bool cut_short = false;  // only by time: what was written may still be wrong
    bool flooded = false;    // `report` is only the beginning, cut anywhere
    std::string standard_output;
    std::string standard_error;
    bool to_the_end = false;  // the whole stream was played
    bool has_events = false;  // some line may be the record of an event
    // Events were emitted after the consumer had mapped every buffer.
    bool has_emitted_to_reader = false;
    // The program could not be started or traced, so no run is possible.
    bool is_not_startable = false;
    // A sanitizer (LeakSanitizer) needs ptrace for itself, so every run is inconclusive.
    bool needs_ptrace_itself = false;
};

// Plays the stream in at most 12 s, times the scale, whatever the testee does. Kills all processes
// that the testee leaves.
SmokeRun play_smoke_stream(const SmokeSettings& settings);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SMOKE_STREAM_H_
