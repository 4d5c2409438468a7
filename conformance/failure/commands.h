// SPDX-License-Identifier: MIT
//
// What can be done with the file of a failure: `judge FILE`, `replay FILE`, `shrink FILE`. Each
// prints its result and returns the exit status. Knows the stage only as a function.
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
    std::ostream& error;  // one line where the status is 2 or 3
    // What a person types to run this program: "tools/kmes conformance".
    std::string command = "kmes-conformance";
    // Set by a signal: the command ends as soon as the current run has noticed. It prints what it
    // has found and returns StopFlag::status_or.
    const StopFlag& stop;
    // A move in the words of the explorer; none: in names and figures.
    std::function<std::string(const Move&)> describe = nullptr;
    // Executes this program again in a form of the layout. Returns only if that fails: one line.
    // None: a file of another form is refused.
    std::function<std::string(const Layout&)> change_layout = nullptr;
    // The picture of a failure, for what `replay` shows; none: no picture.
    std::function<std::string(const RunRecord&)> picture = nullptr;
};

// The oracle's findings from the file's histories, without a testee, and whether they are those
// that the file has. Status: 0 nothing is wrong, 1 something is, 2 the file cannot be opened, or
// read as one, 3 the result cannot be printed.
int judge_command(const std::string& path, const FailureTools& tools);

struct ReplayOptions {
    std::vector<std::string> testee;      // in the place of the file's; empty: the file's
    std::uint32_t times = 1;              // runs at most; the first that is no pass ends it
    std::optional<double> timeout_scale;  // in the place of the file's
    bool verbose = false;                 // with the details of the outcome
};

// Runs the case again as the file says. Status: 0 it passes now, 1 it fails (the output says
// whether in the same way), 2 and 3 as above or the suite failed, 4 inconclusive.
int replay_command(const std::string& path, const ReplayOptions& options,
                   const FailureTools& tools);

struct ShrinkOptions {
    std::vector<std::string> testee;
    std::uint32_t maximum_runs = 300;
    std::optional<double> timeout_scale;
};

// Finds the smallest schedule that fails in the same way and the nearest one that passes; prints
// both, and writes the run of the smallest as NAME.smallest.json beside the file. Status: 0 done, 1
// it does not fail again, 2 a bad file or a case without a schedule, 3 as above.
int shrink_command(const std::string& path, const ShrinkOptions& options,
                   const FailureTools& tools);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_FAILURE_COMMANDS_H_
