// SPDX-License-Identifier: MIT
//
// The report as JSON, schema 2: conformance/report/report.schema.json describes every member. Knows
// no file and no terminal.
#ifndef KMES_CONFORMANCE_REPORT_JSON_H_
#define KMES_CONFORMANCE_REPORT_JSON_H_

#include <cstdint>
#include <string>

#include "conformance/report/run_report.h"

namespace kmes::conformance {

inline constexpr std::uint32_t kReportSchema = 2;

// Returns valid JSON in valid UTF-8 with a newline at the end. Bytes that are no UTF-8 become \xNN.
std::string to_json(const RunReport& report);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_JSON_H_
