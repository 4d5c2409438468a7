// SPDX-License-Identifier: MIT
//
// See judge_file.h.
#include "conformance/failure/judge_file.h"

#include <algorithm>
#include <exception>
#include <optional>

#include "conformance/failure/failure_file.h"
#include "conformance/oracle/history.h"
#include "conformance/oracle/judge.h"
#include "conformance/oracle/record.h"

namespace kmes::conformance {
namespace {

// The findings of `all` that are not the driver's.
std::vector<Finding> without(std::vector<Finding> all, const std::vector<Finding>& driver) {
    for (const Finding& finding : driver) {
        const auto same = std::find_if(all.begin(), all.end(), [&](const Finding& other) {
            return same_finding(other, finding);
        });
        if (same != all.end()) all.erase(same);
    }
    return all;
}

std::string why_not(const RunRecord& record) {
    if (!record.history.complete)
        return "the file has no history of the producer (the run was too long to be kept, or ended "
               "before it began); `replay` runs the case again";
    if (record.report_left_out > 0)
        return "the testee wrote more than a file keeps: " +
               std::to_string(record.report_left_out) +
               " bytes of its report are left out; `replay` runs the case again";
    return "";
}

}  // namespace

JudgedAgain judge_record(const RunRecord& record) {
    JudgedAgain judged;
    judged.error = why_not(record);
    if (!judged.error.empty()) return judged;
    judged.driver = record.driver_findings;
    judged.oracle_in_file = without(record.findings, record.driver_findings);
    try {
        const History history = history_from(record.history);
        RecordParser parser;
        parser.feed(record.report);
        parser.finish();
        judged.oracle = judge(history, parser, record.judge_options);
    } catch (const std::exception& error) {
        judged.error = std::string("history: ") + error.what();
        return judged;
    }
    judged.equal =
        std::equal(judged.oracle.begin(), judged.oracle.end(), judged.oracle_in_file.begin(),
                   judged.oracle_in_file.end(), same_finding);
    return judged;
}

}  // namespace kmes::conformance
