// SPDX-License-Identifier: MIT
//
// The command lines of `judge`, `replay` and `shrink`. Their actions on the failure file are in
// conformance/failure.
#ifndef KMES_CONFORMANCE_MAIN_FAILURE_COMMANDS_H_
#define KMES_CONFORMANCE_MAIN_FAILURE_COMMANDS_H_

#include <vector>

#include "conformance/main/program.h"

namespace kmes::conformance {

std::vector<Command> failure_commands();

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_FAILURE_COMMANDS_H_
