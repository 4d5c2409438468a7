// SPDX-License-Identifier: MIT
//
// See replay_command.h.
#include "conformance/main/replay_command.h"

#include <fmt/format.h>

#include <vector>

#include "conformance/main/case_run.h"
#include "conformance/report/result.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

// Adds the options that depend on what the case demands, and those of the whole run.
void add_demanded(std::vector<std::string>& words, Demand demand, const Options& options) {
    const ExploreSettings& explore = options.explore;
    if (demand == Demand::explored && explore.deep) {
        words.insert(words.end(), {"--explore", "deep"});
    } else if (demand == Demand::explored && explore.seconds != ExploreSettings{}.seconds) {
        words.insert(words.end(), {"--explore", fmt::format("{}", explore.seconds)});
    } else if (demand == Demand::shared) {
        words.push_back("--shared");
    } else if (demand == Demand::as_published) {
        words.insert(words.end(), {"--producer", "as-published"});
    } else if (demand == Demand::soak) {
        words.insert(words.end(), {"--soak", fmt::format("{}", options.soak_seconds)});
    } else if (demand == Demand::stream) {
        words.insert(words.end(), {"--stream", options.stream});
    }
    if (!options.layout.empty()) words.insert(words.end(), {"--layout", options.layout});
    if (!options.device.empty()) words.insert(words.end(), {"--device", options.device});
    if (options.stepper != Stepper::automatic) {
        words.insert(words.end(), {"--stepper", std::string(stepper_name(options.stepper))});
    }
}

}  // namespace

std::string replay_command(const Options& options, const std::string& command,
                           const Case& the_case) {
    std::vector<std::string> words{"--filter", std::string(the_case.id)};
    if (the_case.level > kDefaultLevel) {
        words.insert(words.end(), {"--level", std::string(level_name(the_case.level))});
    }
    words.insert(words.end(),
                 {"--cpus", std::to_string(options.cpus), "--capacity",
                  std::to_string(options.capacity_bytes), "--seed", std::to_string(options.seed)});
    if (!options.preflight) words.push_back("--no-preflight");
    if (options.timeout_scale != 1.0) {
        words.insert(words.end(), {"--timeout-scale", fmt::format("{}", options.timeout_scale)});
    }
    add_demanded(words, the_case.demand, options);
    words.push_back("--");
    words.insert(words.end(), options.testee.begin(), options.testee.end());
    // A reader of the JSON report refuses longer texts.
    return std::string(cut(command + " " + shell_command(words), kTextBytesInAReport));
}

}  // namespace kmes::conformance
