// SPDX-License-Identifier: MIT
//
// The command `smoke`: is the adapter of a new testee correct? Knows the command line and how to
// print. The caller provides the player of the stream, so that it can be tested without a testee.
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

// Returns what is wrong with the lines of the report. Omits a missing record if it may have been
// about to come, or if its cause is reported anyway.
std::vector<LineProblem> wrong_lines(const SmokeRun& run);

// Prints all mistakes, the first of each kind in full, and what the program itself printed.
void print_mistakes(std::ostream& out, const SmokeRun& run, const std::vector<LineProblem>& lines);

// The command, played by `player`.
Command smoke_command(SmokePlayer player = play_smoke_stream);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SMOKE_H_
