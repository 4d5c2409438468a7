// SPDX-License-Identifier: MIT
//
// The command line that plays a case of a run again, for reports.
#ifndef KMES_CONFORMANCE_MAIN_REPLAY_COMMAND_H_
#define KMES_CONFORMANCE_MAIN_REPLAY_COMMAND_H_

#include <string>

#include "conformance/main/options.h"
#include "conformance/model/case.h"

namespace kmes::conformance {

// Returns the command line with the options that the case needs to run in the same way, at most
// kTextBytesInAReport bytes of it. `command` is what was typed to start the suite.
std::string replay_command(const Options& options, const std::string& command,
                           const Case& the_case);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_REPLAY_COMMAND_H_
