// SPDX-License-Identifier: MIT
//
// The settings that the command line gives to a run. Plain data.
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

// The extent of the exploration (--explore). All explored cases of a run share the seconds. 0: no
// limit, every point of every scenario.
struct ExploreSettings {
    bool on = true;
    double seconds = 25;  // --explore quick
    bool deep = false;    // every access to the data, and thousands of schedules of several moves
    // --explore SECONDS: play schedules of several moves until the time is over.
    bool to_the_limit = false;
};

// The part of an exploration or a soak that this run plays: shard `index` of `total`.
struct ExplorePart {
    std::uint32_t index = 0;
    std::uint32_t total = 1;
};

// The method by which the suite stops at single accesses of the testee (--stepper).
enum class Stepper { automatic, guards, watchpoints, single_step };
inline constexpr std::string_view kStepperNames[] = {"auto", "guards", "watchpoints",
                                                     "single-step"};
constexpr std::string_view stepper_name(Stepper stepper) {
    return kStepperNames[static_cast<std::size_t>(stepper)];
}

// The settings of a run.
struct StageSettings {
    std::vector<std::string> testee;  // program and arguments
    std::uint32_t cpus = 4;
    std::uint64_t capacity_bytes = 65536;
    std::uint64_t seed = 0;
    double timeout_scale = 1.0;
    // A second factor, on the time without progress after which a testee counts as hung. It is less
    // than 1 for a testee that has hung in several cases of this run.
    double patience = 1.0;
    // Seconds for which the runner waits for one process of the testee, however much progress that
    // makes; the timeout scale multiplies them. A case that takes longer is inconclusive.
    double longest_run_seconds = 1800;
    bool verbose = false;
    ExploreSettings explore;
    Stepper stepper = Stepper::automatic;
    // Include cases with several consumers on one buffer (--shared, E12).
    bool shared = false;
    // Cases in which the producer follows the published rules (--producer as-published).
    bool as_published = false;
    // Seconds of the case `soak` (--soak); 0: the case does not run.
    double soak_seconds = 0;
    // This run's part of a search that several shards share.
    ExplorePart part;
    // The record file whose events the cases `stream` emit (--stream); empty: they do not run.
    std::string stream;
    // The device of a test build of the kernel module that provides the buffers (--device). Empty:
    // the runner's own buffers.
    std::string device;
    // The form of the layout (model/layout.h); empty: form A. The whole process has one form.
    std::string layout;
    // The processor on which runner and testee take turns while pages are guarded; -1: any. Cases
    // that are played at the same time have one each.
    int processor = -1;
    // Record a timeline for the trace of a failure. A search over thousands of runs turns it off,
    // and plays a failure once more with it.
    bool record_timeline = true;
    // Record every access of the testee to its buffers in the timeline. Slow; for the trace of a
    // failure.
    bool record_accesses = false;
    // --debug: no time limits; `debugger` is asked before the testee continues. Null: no debugger.
    bool debug = false;
    Debugger* debugger = nullptr;
    // For `replay`: the only schedule that an explored case plays.
    std::optional<Schedule> schedule;
    // Set by SIGINT and SIGTERM. The stage then kills the testee and returns at its next check.
    // Never null.
    const StopFlag* stop = nullptr;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_SETTINGS_H_
