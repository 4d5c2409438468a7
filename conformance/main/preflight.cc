// SPDX-License-Identifier: MIT
//
// See preflight.h.
#include "conformance/main/preflight.h"

#include <algorithm>
#include <sstream>

#include "conformance/main/smoke_check.h"
#include "conformance/report/result.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

// The third CPU would have a buffer to be refused. A consumer that exits there can pass most cases.
constexpr std::uint32_t kCpus = 2;

// Whether some line that came in time is the correct record of an event emitted after the attach.
bool has_delivered(const SmokeRun& run) {
    const std::string report = "\n" + run.report.substr(0, run.in_time);
    const History& history = run.rings->history();
    for (std::uint32_t cpu = 0; cpu < history.cpus(); ++cpu) {
        for (const Event& event : history.events_of(cpu)) {
            const bool was_there_before = cpu == 0 && event.sequence == 1;
            // Most mistakes do not change the digest of an empty payload.
            if (event.dropped || event.length == 0) continue;
            if (was_there_before && run.has_emitted_to_reader) continue;
            if (report.find("\n" + right_record(cpu, event) + "\n") != std::string::npos)
                return true;
        }
    }
    return false;
}

}  // namespace

Preflight run_preflight(const SmokePlayer& player, const StageSettings& settings) {
    SmokeSettings smoke;
    smoke.testee = settings.testee;
    smoke.timeout_scale = settings.timeout_scale;
    smoke.stop = settings.stop;
    smoke.cpus = std::min(kCpus, settings.cpus);
    smoke.capacity_bytes = settings.capacity_bytes;
    smoke.is_brief = true;
    const SmokeRun run = player(smoke);
    if (run.is_not_startable)
        return {"  " + printable(run.suite_error) + "\n", kExitSuite, run.suite_error, true};
    // An error of the suite may not occur in the next run, and a signal ends the run anyway.
    if (!run.suite_error.empty()) return {};
    if (run.needs_ptrace_itself)
        return {"  " + printable(run.inconclusive) + "\n", kExitInconclusive, run.inconclusive,
                false};
    if (!run.inconclusive.empty()) return {};
    if (has_delivered(run)) {
        Preflight found;
        found.cpus = smoke.cpus;
        return found;
    }
    const std::vector<LineProblem> lines = wrong_lines(run);
    if (run.problems.empty() && lines.empty()) return {};
    std::ostringstream text;
    print_mistakes(text, run, lines);
    return {text.str(), kExitFailed,
            run.problems.empty() ? lines.front().what : run.problems.front(), false};
}

}  // namespace kmes::conformance
