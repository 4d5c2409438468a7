// SPDX-License-Identifier: MIT
//
// What the files of the HTML report share.
#ifndef KMES_CONFORMANCE_REPORT_HTML_PARTS_H_
#define KMES_CONFORMANCE_REPORT_HTML_PARTS_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "conformance/report/trace.h"

namespace kmes::conformance::html {

// Text for an element or a quoted attribute: printable, escaped, and at most kHtmlTextBytes long.
std::string text(std::string_view bytes, bool keep_lines = false);

// Returns the trace as a table with a column for the producer and one for each thread; time runs
// down. A link leads to the first decisive step. `number` is that of the case in the document.
std::string diagram(const Trace& trace, std::size_t number);

}  // namespace kmes::conformance::html

#endif  // KMES_CONFORMANCE_REPORT_HTML_PARTS_H_
