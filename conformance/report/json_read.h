// SPDX-License-Identifier: MIT
//
// Reads a JSON report in the format of to_json. Treats it as hostile.
#ifndef KMES_CONFORMANCE_REPORT_JSON_READ_H_
#define KMES_CONFORMANCE_REPORT_JSON_READ_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "conformance/report/run_report.h"

namespace kmes::conformance {

inline constexpr std::size_t kMaximumReportFileBytes = std::size_t{128} << 20;
// A report in which every case fails with a trace has fewer than a million values.
inline constexpr std::size_t kMaximumReportValues = 4'000'000;

struct ReadReport {
    RunReport report;
    // One line: the member, what is wrong with it, and what would be correct. If not empty,
    // `report` is invalid.
    std::string error;
};

// For every text of to_json, to_json(report_from_json(text).report) equals it. A summary that does
// not follow from the cases is an error.
ReadReport report_from_json(std::string_view text);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_JSON_READ_H_
