// SPDX-License-Identifier: MIT
//
// kmes-conformance from its arguments to its exit status. What it touches outside itself comes from
// the caller, so that all of it can be tested without a testee.
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

// What can stand as the first word, in the place of a run.
struct Command {
    std::string name;
    // `arguments` without the name. Returns the exit status.
    std::function<int(const std::vector<std::string>& arguments, const Surroundings&)> run;
};

// What a short run before the first case says of the adapter (`smoke`).
struct Preflight {
    // Not empty: no case can pass. Lines for a person, with what is wrong.
    std::string mistakes;
    int status = 0;     // of a run that ends for it
    std::string first;  // the first mistake, in one line
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
    // Of what `out` is shown on: its width, and whether it shows UTF-8.
    std::size_t out_columns = 100;
    bool out_is_unicode = false;
    // What a person types to run this program: "tools/kmes conformance".
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
    // How many cases are played at the same time, without --jobs.
    unsigned jobs = 1;
    // Set by a signal: the run ends as soon as the current cases have noticed. The report has every
    // case that was finished before, and the status is StopFlag::status_or.
    const StopFlag& stop;
    std::vector<Command> commands = {};
    // How single accesses will be stopped at, and why so; empty: nothing is said.
    std::function<std::string(const StageSettings&)> describe_stepper = nullptr;
    // A move of a schedule in the words of the explorer; empty: in names and figures.
    std::function<std::string(const Move&)> describe_move = nullptr;
    // Who is asked in a run with --debug.
    Debugger* debugger = nullptr;
    // Executes this program again in a form of the layout. Returns only if that fails: one line.
    std::function<std::string(const Layout&)> change_layout = nullptr;
    // Before the first case; empty: there is no preflight.
    std::function<Preflight(const StageSettings&)> preflight = nullptr;
    // What is wrong with the file of --stream, in one line; empty: nothing.
    std::function<std::string(const std::string& path)> check_stream = nullptr;
};

// `arguments` without the name of the program. Returns the exit status.
int run_program(const std::vector<std::string>& arguments, const Surroundings& surroundings);

// The line `kmes-conformance: ...` on the error stream; returns `status`.
int say(const Surroundings& surroundings, int status, const std::string& line);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_PROGRAM_H_
