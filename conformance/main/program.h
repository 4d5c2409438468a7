// SPDX-License-Identifier: MIT
//
// kmes-conformance from its arguments to its exit status. The caller provides everything outside of
// the program, so that all of it can be tested without a testee.
#ifndef KMES_CONFORMANCE_MAIN_PROGRAM_H_
#define KMES_CONFORMANCE_MAIN_PROGRAM_H_

#include <cstddef>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "conformance/main/shard.h"
#include "conformance/model/case.h"
#include "conformance/model/layout.h"
#include "conformance/model/settings.h"
#include "conformance/model/stop_flag.h"
#include "conformance/report/run_report.h"

namespace kmes::conformance {

struct Surroundings;

// A subcommand: the first word of the command line.
struct Command {
    std::string name;
    // `arguments` without the name. Returns the exit status.
    std::function<int(const std::vector<std::string>& arguments, const Surroundings&)> run;
};

// The result of a short run before the first case, which checks the adapter (`smoke`).
struct Preflight {
    // If not empty, no case can pass: lines for a person that say what is wrong.
    std::string mistakes;
    int status = 0;                 // the exit status of the run in that case
    std::string first;              // the first mistake, in one line
    bool is_not_startable = false;  // the program cannot be started; `first` says why
    std::uint32_t cpus = 0;         // an event was delivered with this number of CPUs; 0: none was
};

struct Surroundings {
    const std::vector<Case>& cases;
    // run_on_stage of conformance/monitors, check_set_up of conformance/stage.
    std::function<CaseOutcome(const Case&, const StageSettings&)> run_on_stage;
    std::function<std::string(const StageSettings&)> check_set_up;
    std::ostream& out;
    std::ostream& error;
    bool out_has_colour = false;
    bool error_shows_progress = false;
    // The properties of the terminal of `out`: its width, and whether it shows UTF-8.
    std::size_t out_columns = 100;
    bool out_is_unicode = false;
    // How a person calls this program: "tools/kmes conformance".
    std::string command = "kmes-conformance";
    // The lines of --version (version.h).
    std::string version = {};
    // For reports.
    SuiteVersion suite = {};
    Machine machine = {};
    // The value of KMES_TIMEOUT_SCALE.
    std::string timeout_scale;
    // The environment of a test that Bazel runs in shards.
    ShardEnvironment shard = {};
    // How many cases run at the same time without --jobs.
    unsigned jobs = 1;
    // Set by a signal: the run ends as soon as the current cases have noticed. The report then has
    // every case that had finished, and the exit status is StopFlag::status_or.
    const StopFlag& stop;
    std::vector<Command> commands = {};
    // Says why a documented clause has no case; empty: it has one, or nothing is known of it.
    std::function<std::string(std::string_view clause)> why_no_case = nullptr;
    // Says how the suite will stop at single accesses, and why; if empty, nothing is printed. The
    // number is that of the CPUs of the preflight, or 0.
    std::function<std::string(const StageSettings&, std::uint32_t)> describe_stepper = nullptr;
    // Describes a move in the words of the explorer; if empty, moves are shown as names and
    // figures.
    std::function<std::string(const Move&)> describe_move = nullptr;
    // The debugger of a run with --debug.
    Debugger* debugger = nullptr;
    // Executes this program again with another form of the layout. Returns only on failure: one
    // line.
    std::function<std::string(const Layout&)> change_layout = nullptr;
    // --layout auto: starts the consumer to find its form, and executes this program again with
    // that form. Returns an empty string if the consumer cannot be started, and one line on
    // failure.
    std::function<std::string(const std::vector<std::string>& testee, double timeout_scale)>
        detect_layout = nullptr;
    // Runs before the first case; if empty, there is no preflight.
    std::function<Preflight(const StageSettings&)> preflight = nullptr;
    // Says which other form of the layout a program attaches by; empty: it does not.
    std::function<std::string(const std::vector<std::string>& testee, double timeout_scale)>
        other_form = nullptr;
    // Returns one line that says what is wrong with the file of --stream; empty: nothing.
    std::function<std::string(const std::string& path)> check_stream = nullptr;
};

// Runs the program. `arguments` exclude its name. Returns the exit status.
int run_program(const std::vector<std::string>& arguments, const Surroundings& surroundings);

// Prints `kmes-conformance: ...` on the error stream, and returns `status`.
int say(const Surroundings& surroundings, int status, const std::string& line);

// Flushes standard output. Returns `status`, or says that it cannot be written and returns 3.
int finish_output(const Surroundings& surroundings, int status);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_PROGRAM_H_
