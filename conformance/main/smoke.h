// SPDX-License-Identifier: MIT
//
// The command `smoke`: is a new testee's adapter right? Knows the command line and how to print;
// how the stream is played comes from the caller, so that it can be tested without a testee.
#ifndef KMES_CONFORMANCE_MAIN_SMOKE_H_
#define KMES_CONFORMANCE_MAIN_SMOKE_H_

#include <functional>
#include <string>
#include <vector>

#include "conformance/main/program.h"
#include "conformance/main/smoke_stream.h"

namespace kmes::conformance {

using SmokePlayer = std::function<SmokeRun(const SmokeSettings&)>;

// The command, played by `player`.
Command smoke_command(SmokePlayer player = play_smoke_stream);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SMOKE_H_
