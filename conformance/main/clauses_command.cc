// SPDX-License-Identifier: MIT
//
// The command `clauses`.
#include "conformance/main/clauses_command.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "conformance/main/command_line.h"
#include "conformance/report/result.h"

namespace kmes::conformance {

Command clauses_command(std::function<void(std::ostream&)> print) {
    return {"clauses", [print = std::move(print)](const auto& arguments, const auto& around) {
                const CommandWords words = split_words(arguments);
                CLI::App app(
                    "Lists each clause of the specification with its cases, and each case with the "
                    "broken consumers that it has to fail.",
                    "kmes-conformance clauses");
                if (const auto status = parse_words(app, words.own, around)) return *status;
                if (words.has_program) {
                    return say_usage("clauses", "this command takes no program", around);
                }
                print(around.out);
                return finish_output(around, kExitClean);
            }};
}

}  // namespace kmes::conformance
