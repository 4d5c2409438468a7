// SPDX-License-Identifier: MIT
//
// The report as JSON, schema 1. Knows no file and no terminal.
#ifndef KMES_CONFORMANCE_REPORT_JSON_H_
#define KMES_CONFORMANCE_REPORT_JSON_H_

#include <string>

#include "conformance/report/run_report.h"

namespace kmes::conformance {

// {"schema":1,"suite":...,"testee":[...],"seed":N,
//  "cases":[{"id","level","verdict","clause","message","seconds","replay"}],
//  (and where there is something to say: "stepper" of the run; of a case "explored":{"schedules",
//  "seconds","whole"} and "saved", the file of its failure)
//  "summary":{"pass","fail","inconclusive","unsupported","suite_error"}} and a newline.
// Always valid JSON in valid UTF-8; bytes that are none become \xNN.
std::string to_json(const RunReport& report);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_JSON_H_
