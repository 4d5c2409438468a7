// SPDX-License-Identifier: MIT
//
// The commands `judge`, `replay` and `shrink`: their command line. What they do with the file of a
// failure is in conformance/failure.
#ifndef KMES_CONFORMANCE_MAIN_FAILURE_COMMANDS_H_
#define KMES_CONFORMANCE_MAIN_FAILURE_COMMANDS_H_

#include <vector>

#include "conformance/main/program.h"

namespace kmes::conformance {

std::vector<Command> failure_commands();

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_FAILURE_COMMANDS_H_
