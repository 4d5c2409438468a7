// SPDX-License-Identifier: MIT
//
// What a line of words has wrong, said in one line. Knows no option and no command.
#ifndef KMES_CONFORMANCE_MAIN_PARSE_ERROR_H_
#define KMES_CONFORMANCE_MAIN_PARSE_ERROR_H_

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace kmes::conformance {

// The text of an error of CLI11 without its line breaks.
std::string one_line(std::string text);

// What did_you_mean says of the first word before "--" that looks like an option of `app` and is
// none.
std::string meant_option(const CLI::App& app, const std::vector<std::string>& words);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_PARSE_ERROR_H_
