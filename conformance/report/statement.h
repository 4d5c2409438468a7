// SPDX-License-Identifier: MIT
//
// The statement: a page of text about a run, for a vendor to publish. It follows from the JSON
// report alone, so `verify` can make it again and compare. Knows no file and no terminal.
#ifndef KMES_CONFORMANCE_REPORT_STATEMENT_H_
#define KMES_CONFORMANCE_REPORT_STATEMENT_H_

#include <string>
#include <string_view>

#include "conformance/report/run_report.h"

namespace kmes::conformance {

inline constexpr std::string_view kStatementTitle = "KMES conformance statement, format 1";

// `json` is the whole JSON report of this run; the statement contains its SHA-256. Returns lines of
// printable UTF-8 of bounded length.
std::string to_statement(const RunReport& report, std::string_view json);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_STATEMENT_H_
