// SPDX-License-Identifier: MIT
//
// The command `smoke`.
#include "conformance/main/smoke.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "conformance/main/command_line.h"
#include "conformance/main/layout_choice.h"
#include "conformance/main/options.h"
#include "conformance/main/preflight.h"
#include "conformance/main/smoke_check.h"
#include "conformance/report/result.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

constexpr std::size_t kProblemsShown = 8;
constexpr std::size_t kLinesShown = 20;
constexpr std::size_t kErrorLines = 12;
// Longer lines continue in the next one, indented by this much.
constexpr std::size_t kLineBytes = 200;
constexpr std::size_t kGoesOn = 6;
// A correct adapter that takes longer is not started again, so that no check takes a second more.
constexpr std::chrono::seconds kQuickRun{1};

// The first lines of what the testee wrote elsewhere.
void print_text(std::ostream& out, std::string_view title, const std::string& text) {
    if (text.empty()) return;
    out << "\n" << title << ":\n";
    const std::string safe = printable(text, true);
    std::size_t lines = 0;
    for (std::size_t begin = 0; begin < safe.size() && lines < kErrorLines; ++lines) {
        const std::size_t end = std::min(safe.find('\n', begin), safe.size());
        out << "    | " << safe.substr(begin, end - begin) << "\n";
        begin = end + 1;
    }
}

void print_report(std::ostream& out, const std::string& report) {
    out << "\nits report:\n";
    std::size_t line = 1;
    for (std::size_t begin = 0; begin < report.size(); ++line) {
        const std::size_t end = std::min(report.find('\n', begin), report.size());
        out << fmt::format("{:>5}  {}\n", line, printable(report.substr(begin, end - begin)));
        begin = end + 1;
    }
}

void print_problem(std::ostream& out, const LineProblem& problem) {
    const std::string where = problem.line == 0 ? "" : fmt::format("line {}: ", problem.line);
    out << wrapped("  " + where + printable(problem.what), kLineBytes, kGoesOn);
    if (!problem.is.empty()) out << "      is:    " << printable(problem.is) << "\n";
    if (!problem.right.empty()) out << "      right: \"" << printable(problem.right) << "\"\n";
}

// The kind of a problem: its text without what is special to this line (quoted texts and figures).
std::string kind_of(const LineProblem& problem) {
    std::string kind;
    bool quoted = false;
    for (const char byte : problem.what.substr(0, problem.what.rfind("; "))) {
        if (byte == '"') quoted = !quoted;
        if (!quoted && (byte < '0' || byte > '9')) kind += byte;
    }
    return kind;
}

// Prints the first problem of each kind in full, and only the line numbers of the others.
void print_problems(std::ostream& out, const std::vector<LineProblem>& problems) {
    struct Kind {
        const LineProblem* first;
        std::string others;  // their lines
        std::size_t count = 0;
    };
    std::vector<Kind> kinds;
    std::map<std::string, std::size_t> index;
    for (const LineProblem& problem : problems) {
        const auto [at, is_new] = index.emplace(kind_of(problem), kinds.size());
        if (is_new || problem.line == 0) {
            kinds.push_back({&problem, ""});
            continue;
        }
        Kind& kind = kinds[at->second];
        if (++kind.count <= kLinesShown)
            kind.others += fmt::format("{}{}", kind.count == 1 ? "" : ", ", problem.line);
    }
    for (std::size_t i = 0; i < kinds.size() && i < kProblemsShown; ++i) {
        const Kind& kind = kinds[i];
        print_problem(out, *kind.first);
        if (kind.count == 0) continue;
        out << "      likewise in: " << kind.others;
        if (kind.count > kLinesShown) out << fmt::format(" and {} more", kind.count - kLinesShown);
        out << "\n";
    }
    if (kinds.size() > kProblemsShown) {
        out << fmt::format("  and {} more\n", kinds.size() - kProblemsShown);
    }
}

// `scale`: the option of this run for the next one, after a space; or empty.
int print_run(const SmokeRun& run, const std::vector<LineProblem>& lines, bool verbose,
              const std::string& scale, double factor, const std::vector<std::string>& program,
              const Surroundings& around) {
    std::ostream& out = around.out;
    if (verbose) print_report(out, run.report);
    const std::size_t count = run.problems.size() + lines.size();
    // A program of another form delivers nothing.
    const bool may_be_of_another_form = count > 0 && !run.has_events && around.other_form;
    const std::string other_form = may_be_of_another_form ? around.other_form(program, factor) : "";
    if (count == 0) {
        for (const std::string& fact : run.facts) out << "  " << fact << "\n";
        const std::string form = other_layout();
        out << "the adapter is correct; now run: " << around.command
            << (form.empty() ? "" : " --layout " + form) << scale << " -- "
            << shell_command(program) << "\n"
            << std::flush;
        return finish_output(around, kExitClean);
    }
    if (!other_form.empty()) out << wrapped("  " + printable(other_form), kLineBytes, kGoesOn);
    print_mistakes(out, run, lines);
    out << fmt::format("\n{} mistake{}{}\n", count, count == 1 ? "" : "s; begin with the first",
                       verbose ? "" : " (-v shows the report with its line numbers)")
        << std::flush;
    return finish_output(around, kExitFailed);
}

// Starts a correct adapter once more, with one CPU. Returns what is wrong only if no event is
// delivered then; see run_preflight.
std::string mistakes_with_one_cpu(const SmokePlayer& player, StageSettings settings,
                                  double timeout_scale) {
    settings.cpus = 1;
    settings.capacity_bytes = kSmokeCapacity;
    settings.timeout_scale = timeout_scale;
    const Preflight found = run_preflight(player, settings);
    return found.status == kExitFailed ? found.mistakes : "";
}

int run_smoke(const SmokePlayer& player, const std::vector<std::string>& arguments,
              const Surroundings& around) {
    CommandWords words = split_words(arguments);
    CLI::App app(
        "Checks a new testee's adapter by a few events on three CPUs and every kind of record, and "
        "names each mistake in the report by line and field.",
        "kmes-conformance smoke");
    std::string scale;
    std::string form;
    bool verbose = false;
    app.add_option("--layout", form,
                   "form of the ring that the consumer is written for (default A)")
        ->type_name("auto|A|B|C|D");
    app.add_option("--timeout-scale", scale,
                   "factor for the time limit (default KMES_TIMEOUT_SCALE, or 1)")
        ->type_name("X");
    app.add_flag("-v", verbose, "show the testee's report, with line numbers");
    app.footer(
        "The program, with its arguments, follows after --. Exit status: 0 the adapter is "
        "correct;\n1 it is not; 2 bad usage; 3 the suite or its set-up failed; 4 inconclusive. The "
        "check takes at\nmost 15 s, times X.");
    if (const auto status = parse_words(app, words.own, around)) return *status;
    const bool given = app.count("--timeout-scale") > 0;
    const std::string& text = given ? scale : around.timeout_scale;
    const auto factor = text.empty() && !given ? 1.0 : parse_number(text, 0.01, 1000);
    if (!factor) {
        return say_usage("smoke",
                         wrong_value(given ? "--timeout-scale" : "KMES_TIMEOUT_SCALE", text,
                                     "a number from 0.01 to 1000"),
                         around);
    }
    if (app.count("--layout") > 0 && !is_layout_value(form))
        return say_usage("smoke", wrong_value("--layout", form, kRightLayout), around);
    if (words.program.empty() || words.program[0].empty()) {
        return say_usage("smoke", "no program is named; expected smoke -- PROGRAM ARGS...", around);
    }
    if (form == kAutomaticLayout && around.detect_layout) {
        const std::string trouble = around.detect_layout(words.program, *factor);
        if (!trouble.empty()) return say(around, kExitSuite, trouble);
    }
    StageSettings settings;
    settings.testee = words.program;
    settings.stop = &around.stop;
    const std::string problem = around.check_set_up(settings);
    if (!problem.empty()) return say(around, kExitSuite, printable(problem));
    around.out << "smoke: " << printable(shell_command(words.program)) << "\n" << std::flush;
    const auto begin = std::chrono::steady_clock::now();
    const SmokeRun run = player({words.program, *factor, &around.stop});
    const bool is_quick = std::chrono::steady_clock::now() - begin < kQuickRun;
    if (!run.suite_error.empty()) {
        return say(around, around.stop.status_or(kExitSuite), printable(run.suite_error));
    }
    const std::vector<LineProblem> lines = wrong_lines(run);
    const bool is_right_so_far = run.problems.empty() && lines.empty();
    if (!run.inconclusive.empty() && (is_right_so_far || !run.cut_short)) {
        around.out << "inconclusive: " << printable(run.inconclusive) << "\n" << std::flush;
        return finish_output(around, kExitInconclusive);
    }
    if (is_right_so_far && is_quick) {
        const std::string mistakes = mistakes_with_one_cpu(player, settings, *factor);
        if (!mistakes.empty()) {
            around.out << "with 3 CPUs the adapter is correct; started again with 1 CPU:\n"
                       << mistakes << std::flush;
            return finish_output(around, kExitFailed);
        }
    }
    const std::string kept = given ? " --timeout-scale " + shell_command({scale}) : "";
    return print_run(run, lines, verbose, kept, *factor, words.program, around);
}

}  // namespace

std::vector<LineProblem> wrong_lines(const SmokeRun& run) {
    std::vector<LineProblem> lines;
    if (!run.flooded) lines = check_report(run.rings->history(), run.report);
    // If there are no records at all, that is the mistake, and not each missing one.
    if (!run.has_events && !run.problems.empty()) lines.clear();
    // A missing record may have been about to come.
    if (run.cut_short) std::erase_if(lines, [](const LineProblem& each) { return each.line == 0; });
    return lines;
}

void print_mistakes(std::ostream& out, const SmokeRun& run, const std::vector<LineProblem>& lines) {
    for (const std::string& problem : run.problems)
        out << wrapped("  " + printable(problem), kLineBytes, kGoesOn);
    print_problems(out, lines);
    print_text(out, "standard error of the testee", run.standard_error);
    if (run.report.empty()) print_text(out, "standard output of the testee", run.standard_output);
}

Command smoke_command(SmokePlayer player) {
    return {"smoke", [player = std::move(player)](const auto& arguments, const auto& around) {
                return run_smoke(player, arguments, around);
            }};
}

}  // namespace kmes::conformance
