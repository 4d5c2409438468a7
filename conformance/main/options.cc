// SPDX-License-Identifier: MIT
//
// The command line of kmes-conformance.
#include "conformance/main/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

constexpr std::uint64_t kSmallestCapacity = std::uint64_t{64} << 10;
constexpr std::uint64_t kLargestCapacity = std::uint64_t{256} << 20;
constexpr std::uint64_t kMostCpus = 64;
constexpr double kSmallestScale = 0.01;
constexpr double kLargestScale = 1000;

// The options as text: every value is checked here, not by the library, so that its one line says
// what would be right.
struct RawOptions {
    std::vector<std::string> filters;
    std::string explain;
    std::string level;
    std::string cpus;
    std::string capacity;
    std::string seed;
    std::string shuffle;
    std::string timeout_scale;
    std::string report;
    std::string report_file;
};

std::optional<std::uint64_t> parse_decimal(const std::string& text) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    // from_chars takes no sign for an unsigned type and no space.
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stopped != end) return std::nullopt;
    return value;
}

std::string wrong_value(std::string_view option, const std::string& value, std::string_view right) {
    return fmt::format("{} is \"{}\"; {} is right", option, printable(value), right);
}

class Checker {
  public:
    explicit Checker(ParsedOptions& parsed) : parsed_(parsed), options_(parsed.options) {}

    void level(const std::string& value) {
        options_.level = level_from_name(value);
        if (!options_.level) fail("--level", value, "must, should, erratum or robust");
    }

    void cpus(const std::string& value) {
        const auto number = parse_decimal(value);
        if (!number || *number < 1 || *number > kMostCpus) {
            return fail("--cpus", value, "a number from 1 to 64");
        }
        options_.cpus = static_cast<std::uint32_t>(*number);
    }

    void capacity(const std::string& value) {
        const auto number = parse_decimal(value);
        if (!number || !std::has_single_bit(*number) || *number < kSmallestCapacity ||
            *number > kLargestCapacity) {
            return fail("--capacity", value,
                        "a power of two from 65536 (64 KiB) to 268435456 (256 MiB) bytes");
        }
        options_.capacity_bytes = *number;
    }

    void seed(const std::string& value) {
        const auto number = parse_decimal(value);
        if (!number) return fail("--seed", value, "a decimal number below 2^64");
        options_.seed = *number;
    }

    void shuffle(const std::string& value) {
        options_.shuffle = parse_decimal(value);
        if (!options_.shuffle) fail("--shuffle", value, "a decimal number below 2^64");
    }

    void timeout_scale(std::string_view option, const std::string& value) {
        double number = 0;
        const char* end = value.data() + value.size();
        const auto [stopped, error] = std::from_chars(value.data(), end, number);
        if (error != std::errc{} || stopped != end || !std::isfinite(number) ||
            number < kSmallestScale || number > kLargestScale) {
            return fail(option, value, "a number from 0.01 to 1000");
        }
        options_.timeout_scale = number;
    }

    void report(const std::string& value) {
        if (value != "console" && value != "json") {
            return fail("--report", value, "console or json");
        }
        options_.report = value == "json" ? ReportFormat::json : ReportFormat::console;
    }

    void filters(const std::vector<std::string>& values) {
        for (const std::string& value : values) {
            if (value.empty()) return fail("--filter", value, "a pattern for case ids");
        }
        options_.filters = values;
    }

  private:
    void fail(std::string_view option, const std::string& value, std::string_view right) {
        if (parsed_.error.empty()) parsed_.error = wrong_value(option, value, right);
    }

    ParsedOptions& parsed_;
    Options& options_;
};

void declare(CLI::App& app, RawOptions& raw, Options& options) {
    app.add_flag("--list", options.list, "list the cases and end");
    app.add_option("--filter", raw.filters,
                   "run only the cases whose id matches GLOB (*, ?, [...]); repeatable")
        ->type_name("GLOB")
        ->take_all()
        ->allow_extra_args(false);
    app.add_option("--level", raw.level, "cases up to this level (default erratum)")
        ->type_name("must|should|erratum|robust");
    app.add_option("--cpus", raw.cpus, "number of CPUs, 1 to 64 (default 4)")->type_name("N");
    app.add_option(
           "--capacity", raw.capacity,
           "capacity of each buffer, a power of two from 65536 to 268435456 (default 65536)")
        ->type_name("BYTES");
    app.add_option("--seed", raw.seed, "seed of everything random (default 1)")->type_name("N");
    app.add_option("--shuffle", raw.shuffle,
                   "run the cases in an order drawn from SEED (no verdict depends on it)")
        ->type_name("SEED");
    app.add_option("--timeout-scale", raw.timeout_scale,
                   "factor for every time limit (default KMES_TIMEOUT_SCALE, or 1)")
        ->type_name("X");
    app.add_option("--report", raw.report, "form of the report (default console)")
        ->type_name("console|json");
    app.add_option("--report-file", raw.report_file,
                   "write the report to FILE, and print the console report too")
        ->type_name("FILE");
    app.add_option("--explain", raw.explain, "say what a case does and expects, and end")
        ->type_name("CASE");
    app.add_flag("--fail-fast", options.fail_fast, "end at the first case that fails");
    app.add_flag("-v", options.verbose, "show the details of every case");
    app.footer(
        "Behind -- stands the program to test, with its arguments.\n"
        "Exit status: 0 nothing failed and nothing inconclusive; 1 some failed; 2 bad usage;\n"
        "3 the suite or its set-up failed; 4 inconclusive only.");
}

// The library's message on one line.
std::string one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return printable(text);
}

void check(const CLI::App& app, const RawOptions& raw, const std::string& environment_scale,
           ParsedOptions& parsed) {
    Checker checker(parsed);
    if (!environment_scale.empty() && app.count("--timeout-scale") == 0) {
        checker.timeout_scale("KMES_TIMEOUT_SCALE", environment_scale);
    }
    if (app.count("--level") > 0) checker.level(raw.level);
    if (app.count("--cpus") > 0) checker.cpus(raw.cpus);
    if (app.count("--capacity") > 0) checker.capacity(raw.capacity);
    if (app.count("--seed") > 0) checker.seed(raw.seed);
    if (app.count("--shuffle") > 0) checker.shuffle(raw.shuffle);
    if (app.count("--timeout-scale") > 0) {
        checker.timeout_scale("--timeout-scale", raw.timeout_scale);
    }
    if (app.count("--report") > 0) checker.report(raw.report);
    if (app.count("--report-file") > 0) parsed.options.report_file = raw.report_file;
    checker.filters(raw.filters);
    parsed.options.explain = raw.explain;
    if (!parsed.error.empty()) return;
    if (app.count("--explain") > 0 && raw.explain.empty()) {
        parsed.error = wrong_value("--explain", "", "the id of a case");
    } else if (parsed.options.testee.empty() && !parsed.options.list &&
               parsed.options.explain.empty()) {
        parsed.error =
            "no program to test is named; kmes-conformance [OPTIONS...] -- PROGRAM ARGS... is "
            "right";
    } else if (!parsed.options.testee.empty() && parsed.options.testee.front().empty()) {
        parsed.error = "the name of the program behind -- is empty";
    }
}

}  // namespace

ParsedOptions parse_options(const std::vector<std::string>& arguments,
                            const std::string& timeout_scale) {
    ParsedOptions parsed;
    // What stands behind -- is the testee's, whatever it looks like.
    const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
    if (dashes != arguments.end()) parsed.options.testee.assign(dashes + 1, arguments.end());
    CLI::App app("Puts a consumer of KMES events through the conformance suite.",
                 "kmes-conformance");
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    RawOptions raw;
    declare(app, raw, parsed.options);
    // The library wants them last first.
    std::vector<std::string> own(arguments.begin(), dashes);
    std::reverse(own.begin(), own.end());
    try {
        app.parse(own);
    } catch (const CLI::CallForHelp&) {
        parsed.help = app.help();
        return parsed;
    } catch (const CLI::ParseError& error) {
        parsed.error = one_line(error.what());
        return parsed;
    }
    check(app, raw, timeout_scale, parsed);
    return parsed;
}

}  // namespace kmes::conformance
