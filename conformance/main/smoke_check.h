// SPDX-License-Identifier: MIT
//
// Compares the report of a smoke run with its stream: which line is wrong, in which field, and what
// would be correct. It only explains; the judge decides. A report without a finding of the judge is
// correct. Knows no process.
#ifndef KMES_CONFORMANCE_MAIN_SMOKE_CHECK_H_
#define KMES_CONFORMANCE_MAIN_SMOKE_CHECK_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/oracle/history.h"

namespace kmes::conformance {

struct LineProblem {
    std::uint64_t line = 0;  // of the report, from 1; 0: no line
    std::string what;        // one sentence
    std::string is;          // the line, quoted; empty: there is none
    std::string right;       // the correct line; empty: not known
};

// Returns the problems in the order of the lines.
std::vector<LineProblem> check_report(const History& history, std::string_view report);

// "E 0 1 1700000000000000000 0 74 0 cbf29ce484222325".
std::string right_record(std::uint32_t cpu, const Event& event);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SMOKE_CHECK_H_
