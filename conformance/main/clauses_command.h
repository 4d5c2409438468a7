// SPDX-License-Identifier: MIT
//
// The command `clauses`: prints the clause table. Knows nothing of its content.
#ifndef KMES_CONFORMANCE_MAIN_CLAUSES_COMMAND_H_
#define KMES_CONFORMANCE_MAIN_CLAUSES_COMMAND_H_

#include <functional>
#include <ostream>

#include "conformance/main/program.h"

namespace kmes::conformance {

// `print`: print_clauses of conformance/clauses.
Command clauses_command(std::function<void(std::ostream&)> print);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_CLAUSES_COMMAND_H_
