// SPDX-License-Identifier: MIT
//
// The commands on a failure file: `judge FILE`, `replay FILE`, `shrink FILE`. Each prints its
// result and returns the exit status. They know the stage only as a function.
#ifndef KMES_CONFORMANCE_FAILURE_COMMANDS_H_
#define KMES_CONFORMANCE_FAILURE_COMMANDS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "conformance/model/case.h"
#include "conformance/model/layout.h"
#include "conformance/model/run_record.h"
#include "conformance/model/settings.h"
#include "conformance/model/stop_flag.h"

namespace kmes::conformance {

struct FailureTools {
    const std::vector<Case>& cases;
    // run_on_stage of conformance/monitors, check_set_up of conformance/stage.
    std::function<CaseOutcome(const Case&, const StageSettings&)> run_on_stage;
    std::function<std::string(const StageSettings&)> check_set_up;
    std::ostream& out;
    std::ostream& error;  // one line if the status is 2 or 3
    // How a person calls this program: "tools/kmes conformance".
    std::string command = "kmes-conformance";
    // Set by a signal: the command ends as soon as the current run has noticed. It prints what it
    // has found so far, and returns StopFlag::status_or.
    const StopFlag& stop;
    // Describes a move in the words of the explorer; if empty, moves are shown as names and
    // figures.
    std::function<std::string(const Move&)> describe = nullptr;
    // Executes this program again with another form of the layout. Returns only on failure: one
    // line. If empty, a file of another form is refused.
    std::function<std::string(const Layout&)> change_layout = nullptr;
    // Draws the trace of a failure for `replay`; if empty, there is none.
    std::function<std::string(const RunRecord&)> drawing = nullptr;
};

// Judges the file's histories again, without a testee, and compares the findings with those in the
// file. Status: 0 no finding, 1 findings, 2 the file cannot be read or is invalid, 3 the result
// cannot be printed.
int judge_command(const std::string& path, const FailureTools& tools);

struct ReplayOptions {
    std::vector<std::string> testee;  // replaces the file's testee; empty: the file's
    std::uint32_t times = 1;  // maximum number of runs; the first that does not pass is the last
    std::optional<double> timeout_scale;  // replaces the file's
    bool verbose = false;                 // print the details of the outcome
};

// Repeats the run of the file. Status: 0 it passes now, 1 it fails (the output says whether in the
// same way), 2 and 3 as above or the suite failed, 4 inconclusive.
int replay_command(const std::string& path, const ReplayOptions& options,
                   const FailureTools& tools);

struct ShrinkOptions {
    std::vector<std::string> testee;
    std::uint32_t maximum_runs = 300;
    std::optional<double> timeout_scale;
};

// Finds the smallest schedule that fails in the same way, and the nearest one that passes. Prints
// both, and writes the run of the smallest as NAME.smallest.json beside the file. Status: 0 done, 1
// it does not fail again, 2 a bad file or a case without a schedule, 3 as above.
int shrink_command(const std::string& path, const ShrinkOptions& options,
                   const FailureTools& tools);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_FAILURE_COMMANDS_H_
