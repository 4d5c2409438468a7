// SPDX-License-Identifier: MIT
//
// What the commands share: a line of words taken apart, with one clear line where it is wrong.
// Knows no command.
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

struct CommandWords {
    std::vector<std::string> own;      // before --
    std::vector<std::string> program;  // behind it
    bool has_program = false;          // there was a --
};

CommandWords split_words(const std::vector<std::string>& arguments);

// Lets `app` read the words. A value: the command ends with this status (--help, or bad usage,
// which has been said).
std::optional<int> parse_words(CLI::App& app, std::vector<std::string> words,
                               const Surroundings& surroundings);

// Says what is wrong, and where to look.
int say_usage(const std::string& command, const std::string& line,
              const Surroundings& surroundings);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_COMMAND_LINE_H_
