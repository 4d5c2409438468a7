// SPDX-License-Identifier: MIT
//
// Turns an error in a command line into one line. Knows no option and no command.
#ifndef KMES_CONFORMANCE_MAIN_PARSE_ERROR_H_
#define KMES_CONFORMANCE_MAIN_PARSE_ERROR_H_

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace kmes::conformance {

// Returns the text of a CLI11 error without its line breaks.
std::string one_line(std::string text);

// Returns did_you_mean for the first word before "--" that looks like an option but is none of
// `app`.
std::string meant_option(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_PARSE_ERROR_H_
