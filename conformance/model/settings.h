// SPDX-License-Identifier: MIT
//
// What the command line says about a run. Plain data.
#ifndef KMES_CONFORMANCE_MODEL_SETTINGS_H_
#define KMES_CONFORMANCE_MODEL_SETTINGS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/model/schedule.h"
#include "conformance/model/stop_flag.h"

namespace kmes::conformance {

class Debugger;  // an interface of conformance/stage

// How far interleavings are explored (--explore). The seconds are shared by all explored cases of a
// run; 0: no limit, every point of every scenario.
struct ExploreSettings {
    bool on = true;
    double seconds = 25;  // --explore quick
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
    // The record file whose events the cases `stream` emit (--stream); empty: they are not run.
    std::string stream;
    // The device of a test build of the kernel module, whose buffers are used (--device); empty:
    // the runner's own buffers.
    std::string device;
    // The form of the layout (model/layout.h); empty: form A. It is that of the process.
    std::string layout;
    // Where runner and testee take turns while pages are guarded: a processor; -1: any. Several
    // cases that are played at the same time have one each.
    int processor = -1;
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

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_SETTINGS_H_
