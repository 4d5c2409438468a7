// SPDX-License-Identifier: MIT
//
// The trace of a failure as reports show it: the steps near the decisive ones, in a bounded number
// of rows. Plain data; failure/excerpt.h makes it. Texts may hold any byte of a testee.
#ifndef KMES_CONFORMANCE_REPORT_TRACE_H_
#define KMES_CONFORMANCE_REPORT_TRACE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/model/timeline.h"

namespace kmes::conformance {

struct TraceRow {
    std::uint64_t hidden = 0;  // not 0: the row replaces so many steps, and has no other field
    std::uint64_t number = 0;  // of the step, counted from 1 in the whole run
    StepKind kind = StepKind::producer;
    std::int32_t thread = 0;  // 0: the producer, or no column
    std::optional<std::uint32_t> cpu;
    std::string text;
    std::string clause;
    std::string place;   // in the consumer's code: a line, else an instruction; empty: not known
    std::string change;  // of the metadata page by this step: "write_pos 880 -> 910"
    std::vector<std::int32_t> wakes;  // threads that slept on the futex that this step changes
    bool decisive = false;
    std::string why;  // of a decisive step
};

struct Trace {
    std::vector<std::int32_t> threads;  // of the consumer, a column each
    bool has_several_cpus = false;
    std::string left_out;  // CPUs and threads that are not shown; empty: none
    std::vector<TraceRow> rows;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_TRACE_H_
