// SPDX-License-Identifier: MIT
//
// See trace.h.
#include "conformance/report/trace.h"

#include "conformance/model/step_texts.h"

namespace kmes::conformance {

const TraceRow* row_of_line(const Trace& trace) {
    const TraceRow* last = nullptr;
    const TraceRow* access = nullptr;
    const TraceRow* decisive = nullptr;
    const TraceRow* decisive_access = nullptr;
    for (const TraceRow& row : trace.rows) {
        // No line of the code shows what a whole run has left over.
        if (row.decisive && row.why == kWholeRunDecides) return nullptr;
        if (row.place.empty() || row.thread == 0) continue;
        last = &row;
        const bool is_access = row.kind == StepKind::access;
        if (is_access) access = &row;
        if (row.decisive) decisive = &row;
        if (row.decisive && is_access) decisive_access = &row;
    }
    if (decisive_access != nullptr) return decisive_access;
    if (decisive != nullptr) return decisive;
    return access != nullptr ? access : last;
}

}  // namespace kmes::conformance
