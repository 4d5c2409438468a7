// SPDX-License-Identifier: MIT
//
// The command line of `judge`, `replay` and `shrink`.
#include "conformance/main/failure_commands.h"

#include <CLI/CLI.hpp>

#include "conformance/failure/commands.h"
#include "conformance/failure/drawing.h"
#include "conformance/main/command_line.h"
#include "conformance/main/options.h"

namespace kmes::conformance {
namespace {

constexpr std::uint64_t kMostRuns = 1'000'000;

FailureTools tools_of(const Surroundings& around) {
    DrawingOptions drawing;
    if (around.out_columns > 0) drawing.width = around.out_columns;
    drawing.colour = around.out_has_colour;
    drawing.unicode = around.out_is_unicode;
    return {
        .cases = around.cases,
        .run_on_stage = around.run_on_stage,
        .check_set_up = around.check_set_up,
        .out = around.out,
        .error = around.error,
        .command = around.command,
        .stop = around.stop,
        .describe = around.describe_move,
        .change_layout = around.change_layout,
        .drawing = [drawing](const RunRecord& record) { return draw(record.timeline, drawing); }};
}

// FILE, and what else the three commands have in common.
struct FileCommand {
    FileCommand(const std::string& name, const std::string& summary)
        : name(name), app(summary, "kmes-conformance " + name) {
        app.add_option("FILE", file, "the file of a failure, written by --save");
    }

    void add_scale() {
        app.add_option("--timeout-scale", scale,
                       "factor for every time limit (default: the file's)")
            ->type_name("X");
    }
    void add_count(const std::string& option, const std::string& summary) {
        count_option = option;
        app.add_option(option, count, summary)->type_name("N");
    }

    // As parse_words, with the checks that all three need.
    std::optional<int> parse(const std::vector<std::string>& arguments, bool takes_program,
                             const Surroundings& around) {
        words = split_words(arguments);
        if (const auto status = parse_words(app, words.own, around)) return status;
        std::string wrong;
        if (file.empty()) {
            wrong = "no file is named; expected " + name + " FILE";
        } else if (!takes_program && words.has_program) {
            wrong = "this command takes no program: the file has what the testee wrote";
        } else if (words.has_program && (words.program.empty() || words.program[0].empty())) {
            wrong = "no program follows after --";
        } else if (!count_option.empty() && app.count(count_option) > 0) {
            const auto number = parse_decimal(count);
            if (!number || *number < 1 || *number > kMostRuns) {
                wrong = wrong_value(count_option, count, "a number from 1 to 1000000");
            } else {
                runs = static_cast<std::uint32_t>(*number);
            }
        }
        if (wrong.empty() && !scale.empty()) {
            factor = parse_number(scale, 0.01, 1000);
            if (!factor)
                wrong = wrong_value("--timeout-scale", scale, "a number from 0.01 to 1000");
        }
        if (!wrong.empty()) return say_usage(name, wrong, around);
        return std::nullopt;
    }

    std::string name;
    CLI::App app;
    CommandWords words;
    std::string file;
    std::string scale;
    std::string count;
    std::string count_option;
    std::optional<std::uint32_t> runs;
    std::optional<double> factor;
};

int run_judge(const std::vector<std::string>& arguments, const Surroundings& around) {
    FileCommand command("judge", "Judges a saved failure again, without a consumer.");
    command.app.footer(
        "Exit status: 0 the run has no fault; 1 it has one; 2 bad usage or a bad file; 3 "
        "the\nresult cannot be printed.");
    if (const auto status = command.parse(arguments, false, around)) return *status;
    return judge_command(command.file, tools_of(around));
}

int run_replay(const std::vector<std::string>& arguments, const Surroundings& around) {
    FileCommand command("replay",
                        "Runs the case of a saved failure again, with the same schedule.");
    bool verbose = false;
    command.add_count("--times", "at most N runs, until one does not pass (default 1)");
    command.add_scale();
    command.app.add_flag("-v", verbose, "print the details of the outcome");
    command.app.footer(
        "Another program than the file's may follow after --. Exit status: 0 the case passes; 1 "
        "it\nfails; 2 bad usage or a bad file; 3 the suite or its set-up failed; 4 inconclusive or "
        "unsupported.");
    if (const auto status = command.parse(arguments, true, around)) return *status;
    ReplayOptions options;
    options.testee = command.words.program;
    options.times = command.runs.value_or(options.times);
    options.timeout_scale = command.factor;
    options.verbose = verbose;
    return replay_command(command.file, options, tools_of(around));
}

int run_shrink(const std::vector<std::string>& arguments, const Surroundings& around) {
    FileCommand command("shrink",
                        "Finds the smallest schedule that still fails, and the nearest one that "
                        "passes.");
    command.add_count("--runs", "at most N runs (default 300)");
    command.add_scale();
    command.app.footer(
        "Another program than the file's may follow after --. Exit status: 0 done; 1 the case "
        "does\nnot fail again; 2 bad usage, a bad file, or a case without a schedule; 3 the suite "
        "or its set-up failed.");
    if (const auto status = command.parse(arguments, true, around)) return *status;
    ShrinkOptions options;
    options.testee = command.words.program;
    options.maximum_runs = command.runs.value_or(options.maximum_runs);
    options.timeout_scale = command.factor;
    return shrink_command(command.file, options, tools_of(around));
}

}  // namespace

std::vector<Command> failure_commands() {
    return {{"replay", run_replay}, {"judge", run_judge}, {"shrink", run_shrink}};
}

}  // namespace kmes::conformance
