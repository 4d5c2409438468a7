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

// Longer texts are cut, and the document says so.
inline constexpr std::size_t kHtmlTextBytes = 4000;
// The limit for rows of all traces together. Failures after that have no trace.
inline constexpr std::size_t kHtmlTraceRows = 8000;

// Returns a whole document in UTF-8 that loads nothing and sends nothing. Its policy (CSP) permits
// only its own script and style, so no text of a testee can act.
std::string to_html(const RunReport& report);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_HTML_H_
