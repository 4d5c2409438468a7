// SPDX-License-Identifier: MIT
//
// The stream of a smoke run: a handful of events on three CPUs, every kind of record once, played
// to one testee. Says what happened; the lines of the report are judged elsewhere (smoke_check.h).
#ifndef KMES_CONFORMANCE_MAIN_SMOKE_STREAM_H_
#define KMES_CONFORMANCE_MAIN_SMOKE_STREAM_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "conformance/model/stop_flag.h"
#include "conformance/stage/rings.h"

namespace kmes::conformance {

struct SmokeSettings {
    std::vector<std::string> testee;
    double timeout_scale = 1.0;
    const StopFlag* stop = nullptr;
};

struct SmokeRun {
    std::unique_ptr<Rings> rings;  // with the history of what was emitted
    std::string report;
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
};

// Ends within 12 s, times the scale, whatever the testee does. What the testee leaves is killed.
SmokeRun play_smoke_stream(const SmokeSettings& settings);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SMOKE_STREAM_H_
