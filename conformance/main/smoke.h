// SPDX-License-Identifier: MIT
//
// The command `smoke`: is a new testee's adapter right? Knows the command line and how to print;
// how the stream is played comes from the caller, so that it can be tested without a testee.
#ifndef KMES_CONFORMANCE_MAIN_SMOKE_H_
#define KMES_CONFORMANCE_MAIN_SMOKE_H_

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "conformance/main/program.h"
#include "conformance/main/smoke_check.h"
#include "conformance/main/smoke_stream.h"

namespace kmes::conformance {

using SmokePlayer = std::function<SmokeRun(const SmokeSettings&)>;

// What is wrong with the lines of its report. A record that is missing is left out where it is not
// known whether it was about to come, or where that says less than what kept it from coming.
std::vector<LineProblem> wrong_lines(const SmokeRun& run);

// All that is wrong, the first of each kind in full, and what the program has said itself.
void print_mistakes(std::ostream& out, const SmokeRun& run, const std::vector<LineProblem>& lines);

// The command, played by `player`.
Command smoke_command(SmokePlayer player = play_smoke_stream);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SMOKE_H_
