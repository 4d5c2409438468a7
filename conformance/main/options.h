// SPDX-License-Identifier: MIT
//
// The command line of kmes-conformance. Knows no case.
#ifndef KMES_CONFORMANCE_MAIN_OPTIONS_H_
#define KMES_CONFORMANCE_MAIN_OPTIONS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "conformance/report/verdict.h"

namespace kmes::conformance {

enum class ReportFormat { console, json };

struct Options {
    bool list = false;
    std::string explain;               // --explain CASE; empty: not asked
    std::vector<std::string> filters;  // --filter GLOB
    std::optional<Level> level;        // --level; without it up to erratum
    std::uint32_t cpus = 4;
    std::uint64_t capacity_bytes = 65536;
    std::uint64_t seed = 1;
    std::optional<std::uint64_t> shuffle;  // --shuffle SEED: cases in another order
    double timeout_scale = 1.0;
    ReportFormat report = ReportFormat::console;
    std::optional<std::string> report_file;
    bool fail_fast = false;
    bool verbose = false;
    std::vector<std::string> testee;  // PROGRAM ARGS...
};

struct ParsedOptions {
    Options options;
    std::string error;  // one line; not empty: bad usage
    std::string help;   // not empty: --help was asked, print this
};

// `arguments` without the name of the program. `timeout_scale` is the value of KMES_TIMEOUT_SCALE
// (empty: not set), which --timeout-scale outranks.
ParsedOptions parse_options(const std::vector<std::string>& arguments,
                            const std::string& timeout_scale = "");

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MAIN_OPTIONS_H_
