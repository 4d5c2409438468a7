// SPDX-License-Identifier: MIT
//
// The trace of a failure in reports: the steps near the decisive ones, in a bounded number of rows.
// Plain data; failure/excerpt.h makes it. Texts may contain any byte of a testee.
#ifndef KMES_CONFORMANCE_REPORT_TRACE_H_
#define KMES_CONFORMANCE_REPORT_TRACE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/model/timeline.h"

namespace kmes::conformance {

struct TraceRow {
    std::uint64_t hidden = 0;  // if not 0, the row replaces this many steps, and has no other field
    std::uint64_t number = 0;  // of the step, from 1 in the whole run
    StepKind kind = StepKind::producer;
    std::int32_t thread = 0;  // 0: the producer, or no column
    std::optional<std::uint32_t> cpu;
    std::string text;
    std::string clause;
    std::string place;   // in the consumer's code: a line, or an instruction; empty: not known
    std::string change;  // what the step changed in the metadata page: "write_pos 880 -> 910"
    std::vector<std::int32_t> wakes;  // the threads that slept on the futex that this step changes
    bool decisive = false;
    std::string why;  // of a decisive step
};

struct Trace {
    std::vector<std::int32_t> threads;  // of the consumer, one column each
    bool has_several_cpus = false;
    std::string left_out;  // the hidden CPUs and threads; empty: none
    std::vector<TraceRow> rows;
};

// Returns the row whose place the report names (named_step). Null: no row has a place, or the whole
// run is the evidence.
const TraceRow* named_row(const Trace& trace);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_TRACE_H_
