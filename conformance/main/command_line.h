// SPDX-License-Identifier: MIT
//
// What the commands share: the parsing of a command line, with one clear line on an error. Knows no
// command.
#ifndef KMES_CONFORMANCE_MAIN_COMMAND_LINE_H_
#define KMES_CONFORMANCE_MAIN_COMMAND_LINE_H_

#include <optional>
#include <string>
#include <vector>

#include "conformance/main/program.h"

namespace CLI {
class App;
}

namespace kmes::conformance {

inline constexpr const char* kProgramFollows = "; the program to test follows after --";

struct CommandWords {
    std::vector<std::string> own;      // before --
    std::vector<std::string> program;  // after --
    bool has_program = false;          // there was a --
};

CommandWords split_words(const std::vector<std::string>& arguments);

// Lets `app` parse the words. If it returns a value, the command ends with this status: after
// --help, or after a printed usage error.
std::optional<int> parse_words(CLI::App& app, std::vector<std::string> words,
                               const Surroundings& surroundings);

// Prints a usage error, and where to find help.
int say_usage(const std::string& command, const std::string& line,
              const Surroundings& surroundings);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_COMMAND_LINE_H_
