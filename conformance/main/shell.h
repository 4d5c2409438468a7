// SPDX-License-Identifier: MIT
//
// For tests of the program without a testee: made-up cases, the streams of a run, and the outcomes
// of its cases.
#ifndef KMES_CONFORMANCE_MAIN_SHELL_H_
#define KMES_CONFORMANCE_MAIN_SHELL_H_

#include <functional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/main/program.h"
#include "conformance/main/testing.h"
#include "conformance/model/case.h"
#include "conformance/model/settings.h"
#include "conformance/model/stop_flag.h"

namespace kmes::conformance {

inline CaseOutcome never_run(Stage&) {
    throw std::logic_error("the test runs cases itself");
}

inline Case case_of(std::string_view id, Level level, Demand demand = Demand::always) {
    return {id, level, "a title", "what is done", "what is right", never_run, demand};
}

inline std::vector<Case> few_cases() {
    return {case_of("5.1.5/maps", Level::must), case_of("5.1.8.3/checks", Level::should),
            case_of("E21/twice", Level::erratum), case_of("E7/torn-size", Level::robust)};
}

// The program, its streams, and the outcomes of its cases.
class Shell {
  public:
    Shell() = default;
    Shell(const Shell&) = delete;
    Shell& operator=(const Shell&) = delete;

    int run(const std::vector<std::string>& arguments) {
        out.str("");
        error.str("");
        ran.clear();
        const Surroundings surroundings{
            .cases = cases,
            .run_on_stage =
                [this](const Case& the_case, const StageSettings& settings) {
                    ran.emplace_back(the_case.id);
                    last_settings = settings;
                    return act ? act(the_case) : CaseOutcome{Verdict::pass, "", "", ""};
                },
            .check_set_up = [this](const StageSettings&) { return set_up_problem; },
            .out = out,
            .error = error,
            .out_has_colour = has_colour,
            .error_shows_progress = terminal,
            .command = "tools/kmes conformance",
            .version = "kmes-conformance 7\n",
            .timeout_scale = "",
            .shard = shard,
            .stop = stop,
            .commands = commands,
            .describe_stepper = [](const StageSettings&,
                                   std::uint32_t) { return "guards: they work"; },
            .preflight =
                [this](const StageSettings&) {
                    ++preflights;
                    return preflight;
                },
            .other_form = [this](const std::vector<std::string>&, double) { return other_form; },
        };
        return run_program(arguments, surroundings);
    }
    // As run(), with a program to test after --.
    int test(std::vector<std::string> arguments = {}) {
        arguments.insert(arguments.end(), {"--", "./consumer", "an argument"});
        return run(arguments);
    }
    void fail_case(std::string_view id, Verdict verdict = Verdict::fail) {
        act = [id = std::string(id), verdict](const Case& the_case) {
            if (the_case.id != id) return CaseOutcome{Verdict::pass, "", "", ""};
            return CaseOutcome{verdict, "", "it is \xff wrong", "more\n"};
        };
    }

    std::vector<Case> cases = few_cases();
    std::vector<Command> commands = {
        {"smoke", [this](const std::vector<std::string>& words, const Surroundings&) {
             ran = words;
             return 42;
         }}};
    ShardEnvironment shard;
    std::function<CaseOutcome(const Case&)> act;
    std::string set_up_problem;
    Preflight preflight;
    std::string other_form;
    int preflights = 0;
    bool terminal = false;
    bool has_colour = false;  // of the standard output
    StopFlag stop;
    std::ostringstream out;
    std::ostringstream error;
    std::vector<std::string> ran;
    StageSettings last_settings;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_SHELL_H_
