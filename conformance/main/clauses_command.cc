// SPDX-License-Identifier: MIT
//
// The command `clauses`.
#include "conformance/main/clauses_command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <utility>

#include "conformance/main/command_line.h"
#include "conformance/main/selection.h"
#include "conformance/report/result.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

std::string takes_no_name(const std::string& name, const Surroundings& around) {
    const std::string all = pattern_of_clause(around.cases, name);
    return "this command prints all clauses and takes no name; " +
           (all.empty() ? fmt::format("no case is of a clause \"{}\"", printable(name))
                        : fmt::format("--list --filter '{}' prints the cases of {}", printable(all),
                                      printable(name)));
}

}  // namespace

Command clauses_command(std::function<void(std::ostream&)> print) {
    return {"clauses", [print = std::move(print)](const auto& arguments, const auto& around) {
                const CommandWords words = split_words(arguments);
                CLI::App app(
                    "Lists each clause of the specification with its cases, and each case with the "
                    "broken consumers that it has to fail.",
                    "kmes-conformance clauses");
                if (!words.own.empty() && !words.own[0].starts_with('-'))
                    return say_usage("clauses", takes_no_name(words.own[0], around), around);
                if (const auto status = parse_words(app, words.own, around)) return *status;
                if (words.has_program) {
                    return say_usage("clauses", "this command takes no program", around);
                }
                print(around.out);
                return finish_output(around, kExitClean);
            }};
}

}  // namespace kmes::conformance
