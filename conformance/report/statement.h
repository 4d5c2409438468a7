// SPDX-License-Identifier: MIT
//
// The statement: what a vendor publishes about a run, in a page of text. It follows from the JSON
// report alone, so that `verify` can make it again and compare. Knows no file and no terminal.
#ifndef KMES_CONFORMANCE_REPORT_STATEMENT_H_
#define KMES_CONFORMANCE_REPORT_STATEMENT_H_

#include <string>
#include <string_view>

#include "conformance/report/run_report.h"

namespace kmes::conformance {

inline constexpr std::string_view kStatementTitle = "KMES conformance statement, format 1";

// `json` is the whole text of the JSON report of this run: the statement has its SHA-256. Lines of
// printable UTF-8, each of a bounded length.
std::string to_statement(const RunReport& report, std::string_view json);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_STATEMENT_H_
