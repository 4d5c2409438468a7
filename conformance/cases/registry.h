// SPDX-License-Identifier: MIT
//
// What a case is, and the list of all of them. Knows neither how a testee is driven (Stage,
// conformance/stage) nor how results are printed.
#ifndef KMES_CONFORMANCE_CASES_REGISTRY_H_
#define KMES_CONFORMANCE_CASES_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/failure/schedule.h"
#include "conformance/report/stop_flag.h"
#include "conformance/report/verdict.h"

namespace kmes::conformance {

class Stage;     // conformance/stage
class Debugger;  // likewise

// What a run must be asked for, so that a case is part of it. (Its level must fit as well.)
enum class Demand {
    always,
    explored,  // interleavings are explored: all but --explore off
    shared,    // several consumers on one buffer: --shared
    soak,      // --soak SECONDS
};

using CaseFunction = std::function<CaseOutcome(Stage&)>;

// One case. The texts are static.
struct Case {
    std::string_view id;  // `<clause>/<slug>`, unique, stable for ever: case-ids.txt pins it
    Level level = Level::must;
    std::string_view clause;       // that it tests: "5.1.8.1-2", "E21", "contract-3"
    std::string_view title;        // a few words, for --list
    std::string_view description;  // what is done to the testee, and why
    std::string_view expectation;  // what a right testee does
    CaseFunction run;
    Demand demand = Demand::always;
    double explore_share = 0;  // of an explored case: of the seconds of a run of all of them
};

// Every case, in the order in which they run. Defined in conformance/cases.
const std::vector<Case>& all_cases();

// What is wrong with this list (an id without a clause, one that stands twice, an empty text);
// empty: nothing.
std::string check_cases(const std::vector<Case>& cases);

// How far interleavings are explored (--explore). The seconds are shared by all explored cases of a
// run; 0: no limit, every point of every scenario.
struct ExploreSettings {
    bool on = true;
    double seconds = 30;  // --explore quick
    bool deep = false;    // every access to the data, and thousands of schedules of several moves
    // SECONDS: schedules of several moves for as long as there is time.
    bool to_the_limit = false;
};

// The way in which single accesses of the testee are stopped at (--stepper).
enum class Stepper { automatic, guards, watchpoints, single_step };
inline constexpr std::string_view kStepperNames[] = {"auto", "guards", "watchpoints",
                                                     "single-step"};
constexpr std::string_view stepper_name(Stepper stepper) {
    return kStepperNames[static_cast<std::size_t>(stepper)];
}

// What the command line says about a run.
struct StageSettings {
    std::vector<std::string> testee;  // program and arguments
    std::uint32_t cpus = 4;
    std::uint64_t capacity_bytes = 65536;
    std::uint64_t seed = 0;
    double timeout_scale = 1.0;
    // Another factor, on the time in which nothing may come before a testee is called hung: less
    // than 1 for one that has hung in several cases of this run.
    double patience = 1.0;
    bool verbose = false;
    ExploreSettings explore;
    Stepper stepper = Stepper::automatic;
    // Cases with several consumers on one buffer (--shared, E12).
    bool shared = false;
    // Seconds of the case `soak` (--soak); 0: it is not run.
    double soak_seconds = 0;
    // The device of a test build of the kernel module, whose buffers are used (--device); empty:
    // the runner's own buffers.
    std::string device;
    // What happens is written down for the picture of a failure. A search that makes thousands of
    // runs turns it off, and plays what failed once more with it.
    bool record_timeline = true;
    // Every access of the testee to its buffers is told in the timeline: for the picture of a
    // failure, and slow.
    bool record_accesses = false;
    // No limits (--debug), and somebody who is asked before the testee goes on; null: nobody.
    bool debug = false;
    Debugger* debugger = nullptr;
    // For `replay`: the only schedule that an explored case is to play.
    std::optional<Schedule> schedule;
    // Set by SIGINT and SIGTERM: the stage kills the testee and returns as soon as it sees it.
    // Never null.
    const StopFlag* stop = nullptr;
};

// Whether these settings ask for the case.
bool is_demanded(const Case& the_case, const StageSettings& settings);

// Defined in conformance/stage.
//
// Makes a fresh stage (a fresh testee) for this case, runs it, tears it down. Whatever goes wrong
// comes back as an outcome; an exception that gets out is a suite error.
CaseOutcome run_on_stage(const Case& the_case, const StageSettings& settings);

// How single accesses of this testee are seen, and why so, in one line: found out by a first, short
// run of it. Says so where it cannot be found out.
std::string describe_stepper(const StageSettings& settings);

// Whether anything can run at all here: the program is there and can be started and traced. An
// empty string, or one clear line, which ends the run with status 3.
std::string check_set_up(const StageSettings& settings);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_CASES_REGISTRY_H_
