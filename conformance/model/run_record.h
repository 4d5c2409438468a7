// SPDX-License-Identifier: MIT
//
// The record of a failed run. The oracle can judge it again without a testee, the runner can repeat
// it, and a person can understand it. Plain data.
#ifndef KMES_CONFORMANCE_MODEL_RUN_RECORD_H_
#define KMES_CONFORMANCE_MODEL_RUN_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/model/finding.h"
#include "conformance/model/history_log.h"
#include "conformance/model/judge_options.h"
#include "conformance/model/schedule.h"
#include "conformance/model/timeline.h"

namespace kmes::conformance {

struct RunRecord {
    std::optional<Schedule> schedule;  // of an explored case
    // The accesses of the run in which the schedule was played, in order. They show which point is
    // one earlier. Empty: not known. Bounded.
    std::vector<AccessPoint> points;
    HistoryLog history;                 // the producer's operations, as the oracle recorded them
    std::string report;                 // the report of the testee, unchanged
    std::uint64_t report_left_out = 0;  // bytes at its end that are not kept (a flood)
    JudgeOptions judge_options;
    // Findings of the driver (a lost wake-up, a crash), which do not follow from the records.
    std::vector<Finding> driver_findings;
    std::vector<Finding> findings;  // all findings in order of weight: the first is the verdict
    Timeline timeline;
    bool has_all_accesses = false;  // otherwise the timeline has those that the case watched
    std::string standard_error;     // of the testee, its beginning and its end
    // The history of the CPU of the first finding, for a person. Not in a failure file, which has
    // all.
    std::string history_excerpt;
};

// Whether both runs show the same fault: the same first finding on the same CPU. Sequence numbers
// may differ. So may clauses, because a run that sees more may know the clause better.
inline bool is_same_failure(const RunRecord& one, const RunRecord& other) {
    if (one.findings.empty() || other.findings.empty()) return false;
    const Finding& first = one.findings.front();
    const Finding& second = other.findings.front();
    return first.code == second.code && first.cpu == second.cpu;
}

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_RUN_RECORD_H_
