// SPDX-License-Identifier: MIT
//
// Prints the one line that says what is wrong.
#include "conformance/main/program.h"

namespace kmes::conformance {

int say(const Surroundings& around, int status, const std::string& line) {
    around.error << "kmes-conformance: " << line << "\n" << std::flush;
    return status;
}

}  // namespace kmes::conformance
