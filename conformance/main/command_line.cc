// SPDX-License-Identifier: MIT
//
// What the commands share.
#include "conformance/main/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "conformance/main/parse_error.h"
#include "conformance/report/result.h"
#include "conformance/report/text.h"

namespace kmes::conformance {

CommandWords split_words(const std::vector<std::string>& arguments) {
    CommandWords words;
    const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
    words.own.assign(arguments.begin(), dashes);
    words.has_program = dashes != arguments.end();
    if (words.has_program) words.program.assign(dashes + 1, arguments.end());
    return words;
}

std::optional<int> parse_words(CLI::App& app, std::vector<std::string> words,
                               const Surroundings& around) {
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    std::reverse(words.begin(), words.end());  // CLI11 takes the last word first
    try {
        app.parse(words);
    } catch (const CLI::CallForHelp&) {
        around.out << app.help();
        return finish_output(around, kExitClean);
    } catch (const CLI::ParseError& error) {
        return say_usage(app.get_name(), printable(describe(error, app, kProgramFollows)), around);
    }
    return std::nullopt;
}

int say_usage(const std::string& command, const std::string& line, const Surroundings& around) {
    const std::size_t space = command.rfind(' ');
    const std::string name = space == std::string::npos ? command : command.substr(space + 1);
    return say(around, kExitUsage, name + ": " + line + " (" + name + " --help says more)");
}

}  // namespace kmes::conformance
