// SPDX-License-Identifier: MIT
//
// The command line of kmes-conformance. Knows no case.
#ifndef KMES_CONFORMANCE_MAIN_OPTIONS_H_
#define KMES_CONFORMANCE_MAIN_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/main/report_files.h"
#include "conformance/model/settings.h"
#include "conformance/model/verdict.h"

namespace kmes::conformance {

struct Options {
    bool version = false;
    bool list = false;
    std::string explain;               // --explain CASE; empty: not given
    std::vector<std::string> filters;  // --filter GLOB
    std::vector<std::string> without;  // --without GLOB
    std::optional<Level> level;        // --level; without it up to erratum
    std::uint32_t cpus = 4;
    std::uint64_t capacity_bytes = 65536;
    std::uint64_t seed = 1;
    std::optional<std::uint64_t> shuffle;  // --shuffle SEED: cases in another order
    double timeout_scale = 1.0;
    ReportFormat report = ReportFormat::console;
    std::optional<std::string> report_file;
    std::vector<ReportTarget> more_reports;  // --report FORM:FILE
    Consumer consumer;                       // --consumer, --consumer-version
    std::string known_failures;              // --known-failures FILE; empty: not given
    bool fix_known_failures = false;         // --fix-known-failures
    unsigned jobs = 0;                       // --jobs; 0: one for each processor
    bool fail_fast = false;
    bool verbose = false;
    bool quiet = false;                      // --quiet
    bool preflight = true;                   // --no-preflight
    ExploreSettings explore;                 // --explore
    Stepper stepper = Stepper::automatic;    // --stepper
    std::optional<std::string> save_folder;  // --save
    std::string debug;                       // --debug CASE; empty: not given
    bool shared = false;                     // --shared
    bool as_published = false;               // --producer as-published
    double soak_seconds = 0;                 // --soak
    std::string stream;                      // --stream FILE; empty: not given
    std::string device;                      // --device; empty: the runner's own buffers
    std::string layout;                      // --layout; empty: form A
    bool detects_layout = false;             // --layout auto
    std::string expect_unsupported;          // --expect-unsupported FILE; empty: not given
    std::vector<std::string> testee;         // PROGRAM ARGS...
    std::vector<std::string> given;          // the words before --, for a command to copy
};

struct ParsedOptions {
    Options options;
    std::string error;  // one line; not empty: bad usage
    std::string help;   // if not empty, print it (--help)
};

// Parses `arguments`, which exclude the program's name. `timeout_scale` is the value of
// KMES_TIMEOUT_SCALE (empty: not set); --timeout-scale takes precedence. `commands` are the names
// of the subcommands, for --help.
ParsedOptions parse_options(const std::vector<std::string>& arguments,
                            const std::string& timeout_scale = "",
                            const std::vector<std::string>& commands = {});

// Parses a decimal number without sign or spaces. Returns nothing if the text is none, or too
// large.
std::optional<std::uint64_t> parse_decimal(const std::string& text);
// As parse_decimal, also with a unit of 2^10, 2^20 or 2^30 bytes: 64K, 4M, 4MiB, 1G.
std::optional<std::uint64_t> parse_bytes(const std::string& text);
// Parses a number from `least` to `most`; returns nothing for any other text.
std::optional<double> parse_number(const std::string& text, double least, double most);
// Parses off, quick, deep, or seconds; returns nothing for any other text.
std::optional<ExploreSettings> parse_explore(const std::string& text);

// "--cpus is "0"; expected a number from 1 to 64".
std::string wrong_value(std::string_view option, const std::string& value, std::string_view right);

inline constexpr std::string_view kRightExplore =
    "off, quick, deep, or a number of seconds from 0.1 to 1000000";

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_OPTIONS_H_
