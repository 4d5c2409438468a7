// SPDX-License-Identifier: MIT
//
// See trace.h.
#include "conformance/report/trace.h"

#include "conformance/model/named_step.h"

namespace kmes::conformance {

const TraceRow* named_row(const Trace& trace) {
    const auto index =
        named_step(trace.rows, [](const TraceRow& row) { return !row.place.empty(); });
    return index ? &trace.rows[*index] : nullptr;
}

}  // namespace kmes::conformance
