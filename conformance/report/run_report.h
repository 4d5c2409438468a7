// SPDX-License-Identifier: MIT
//
// Everything that a report contains about one run of the suite. Knows no way to print it.
#ifndef KMES_CONFORMANCE_REPORT_RUN_REPORT_H_
#define KMES_CONFORMANCE_REPORT_RUN_REPORT_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/model/verdict.h"
#include "conformance/report/result.h"

namespace kmes::conformance {

inline constexpr std::string_view kSuiteName = "kmes-conformance 1";  // 1: the ring format

// The suite that made a run.
struct SuiteVersion {
    std::string release;
    std::string commit;  // empty: not known
    std::uint32_t ring_format = 0;
    std::uint32_t contract = 0;

    bool operator==(const SuiteVersion&) const = default;
};

// "kmes-conformance 0.20", the first word of a report; without a release, kSuiteName.
std::string suite_title(const SuiteVersion& suite);

// The tested consumer, in the words of its vendor (--consumer, --consumer-version).
struct Consumer {
    std::string name;
    std::string version;  // empty: not given

    bool operator==(const Consumer&) const = default;
};

inline constexpr std::uint32_t kMostShards = 10'000;

// A run with only a part of the cases.
struct Shard {
    std::uint32_t index = 0;
    std::uint32_t total = 1;
    std::vector<std::string> cases;  // ids of the cases of all shards, in the order of the run
};

// The machine of the run.
struct Machine {
    std::string kernel;     // name, release and machine of uname(2)
    std::string processor;  // the name; empty: not known
    std::uint32_t processors = 0;
};

// The value of --producer.
inline constexpr std::string_view kAsPublished = "as-published";

// The options that the verdicts of a run depend on, as on the command line.
struct RunOptions {
    std::string level = "erratum";
    std::string explore = "quick";
    double timeout_scale = 1.0;
    std::vector<std::string> filters;  // --filter
    std::vector<std::string> without;  // --without
    bool shared = false;
    bool as_published = false;  // --producer as-published
    double soak_seconds = 0;
    std::string stream;  // the file of --stream; empty: none
    std::string device;  // empty: the runner's own buffers
    std::string layout;  // empty: form A

    bool operator==(const RunOptions&) const = default;
};

// The number of cases of each level: those of a run without options, and those that an option of
// the run adds. The index is the Level.
using CasesOfLevels = std::array<std::uint64_t, 4>;

// A line of the file of --known-failures or --expect-unsupported that does not fit the run.
struct ListDifference {
    std::string case_id;  // empty: the line names no case of the suite
    std::string message;  // one line

    bool operator==(const ListDifference&) const = default;
};

struct RunReport {
    SuiteVersion suite;
    Consumer consumer;
    Machine machine;
    std::int64_t began = 0;  // seconds since 1970, UTC
    RunOptions options;
    CasesOfLevels suite_cases = {};
    std::optional<Shard> shard;
    std::vector<std::string> testee;  // program and arguments
    std::uint32_t cpus = 0;
    std::uint64_t capacity_bytes = 0;
    std::uint64_t seed = 0;
    std::string stepper;  // how the suite stopped at single accesses, and why; empty: not known
    std::vector<CaseResult> results;
    // The indexes of the failures in the order for a reader; empty: the order of the run.
    std::vector<std::size_t> reading_order;
    std::vector<std::string> not_run;         // ids of the cases that the run did not reach
    bool interrupted = false;                 // because of a signal
    std::vector<ListDifference> differences;  // if not empty, the run has failed
    // A shard has those of cases of which it played a part here. `merge` decides whether they
    // count.
    std::vector<ListDifference> part_differences;
    // If not empty, the adapter cannot work, so no case was run: lines that say what is wrong.
    std::string preflight;
    int preflight_status = 0;  // the exit status in that case
    double seconds = 0;
};

// Returns the exit status, which follows from the cases and the differences, or from an adapter
// that cannot work. An interrupted run has the status of its signal instead
// (StopFlag::status_or). Without a signal it counts as an error of the suite.
int exit_status(const RunReport& report);

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_REPORT_RUN_REPORT_H_
