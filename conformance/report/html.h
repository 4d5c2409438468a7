// SPDX-License-Identifier: MIT
//
// The report as one HTML file for a browser: a summary by level and clause, each failure with its
// trace as a sequence diagram, and filters. Knows no file and no terminal.
#ifndef KMES_CONFORMANCE_REPORT_HTML_H_
#define KMES_CONFORMANCE_REPORT_HTML_H_

#include <cstddef>
#include <string>

#include "conformance/report/run_report.h"

namespace kmes::conformance {

// A text with more bytes is cut, and the document says so.
inline constexpr std::size_t kHtmlTextBytes = 4000;
// Rows of all traces together; the failures after that have no trace.
inline constexpr std::size_t kHtmlTraceRows = 8000;

// A whole document in UTF-8 that loads nothing and sends nothing. Its policy (CSP) permits no
// script and no style but its own, so that no text of a testee can act.
std::string to_html(const RunReport& report);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_HTML_H_
