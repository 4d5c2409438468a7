// SPDX-License-Identifier: MIT
//
// The report as JUnit XML, for CI servers. Knows no file and no terminal.
#ifndef KMES_CONFORMANCE_REPORT_JUNIT_H_
#define KMES_CONFORMANCE_REPORT_JUNIT_H_

#include <string>

#include "conformance/report/run_report.h"

namespace kmes::conformance {

// Returns one <testsuite> with a <testcase> for each case. Its name is the id, its class the level
// and the clause. A failure is a <failure>, an unsupported case is <skipped>. An inconclusive case,
// an error of the suite and a case that did not run are an <error>, so that no server shows a clean
// run. Always well-formed XML 1.0 in UTF-8; other bytes become \xNN.
std::string to_junit(const RunReport& report);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_JUNIT_H_
