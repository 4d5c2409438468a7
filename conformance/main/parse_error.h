// SPDX-License-Identifier: MIT
//
// Turns an error in a command line into one line. Knows no option and no command.
#ifndef KMES_CONFORMANCE_MAIN_PARSE_ERROR_H_
#define KMES_CONFORMANCE_MAIN_PARSE_ERROR_H_

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace kmes::conformance {

// Returns a line that says what is wrong and, where it can be guessed, what was meant. It may have
// any byte of the command line. `no_word` is added where a word is given to a command that takes
// none.
std::string describe(const CLI::ParseError& error, const CLI::App& app,
                     const std::string& no_word = "");

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_PARSE_ERROR_H_
