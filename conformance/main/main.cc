// SPDX-License-Identifier: MIT
//
// The program kmes-conformance: the real cases, the real stage, this process's streams.
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "conformance/cases/registry.h"
#include "conformance/main/interrupt.h"
#include "conformance/main/program.h"

namespace {

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? std::string() : std::string(value);
}

}  // namespace

int main(int argument_count, char** arguments) {
    using namespace kmes::conformance;
    // A command that wraps this one says how it is called, so that "run again" can be typed.
    std::string command = environment("KMES_CONFORMANCE_COMMAND");
    if (command.empty()) command = argument_count > 0 ? arguments[0] : "kmes-conformance";
    const Surroundings surroundings{
        .cases = all_cases(),
        .run_on_stage = run_on_stage,
        .check_set_up = check_set_up,
        .out = std::cout,
        .error = std::cerr,
        .out_is_terminal = ::isatty(STDOUT_FILENO) == 1,
        .error_is_terminal = ::isatty(STDERR_FILENO) == 1,
        .command = command,
        .timeout_scale = environment("KMES_TIMEOUT_SCALE"),
        .stop = watch_interrupts(),
    };
    return run_program({arguments + (argument_count > 0 ? 1 : 0), arguments + argument_count},
                       surroundings);
}
