// SPDX-License-Identifier: MIT
//
// Prints the one line that says what is wrong.
#include "conformance/main/program.h"
#include "conformance/report/result.h"

namespace kmes::conformance {

int say(const Surroundings& around, int status, const std::string& line) {
    around.error << "kmes-conformance: " << line << "\n" << std::flush;
    return status;
}

int finish_output(const Surroundings& around, int status) {
    around.out.flush();
    if (around.out.good()) return status;
    return say(around, kExitSuite, "cannot write to standard output");
}

}  // namespace kmes::conformance
