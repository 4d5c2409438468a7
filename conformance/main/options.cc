// SPDX-License-Identifier: MIT
//
// The command line of kmes-conformance.
#include "conformance/main/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>
#include <tuple>
#include <utility>

#include "conformance/main/case_pool.h"
#include "conformance/main/command_line.h"
#include "conformance/main/layout_choice.h"
#include "conformance/main/parse_error.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

constexpr std::uint64_t kSmallestCapacity = std::uint64_t{64} << 10;
constexpr std::uint64_t kLargestCapacity = std::uint64_t{256} << 20;
constexpr std::uint64_t kMostCpus = 64;
constexpr double kSmallestScale = 0.01;
constexpr double kLargestScale = 1000;
constexpr double kLeastSeconds = 0.1;
constexpr double kMostSeconds = 1e6;

// The options as text. This file checks every value instead of the library, so that the one error
// line says what would be correct.
struct RawOptions {
    std::vector<std::string> filters;
    std::vector<std::string> without;
    std::string explain;
    std::string level;
    std::string cpus;
    std::string capacity;
    std::string seed;
    std::string shuffle;
    std::string timeout_scale;
    std::vector<std::string> reports;
    std::string report_file;
    std::string explore;
    std::string stepper;
    std::string save;
    std::string layout;
    std::string debug;
    std::string jobs;
    std::string soak;
    std::string producer;
};

bool is_capacity(std::uint64_t bytes) {
    return std::has_single_bit(bytes) && bytes >= kSmallestCapacity && bytes <= kLargestCapacity;
}

// "; did you mean 64K?" for 64KB, 64k and 64kb; else empty.
std::string meant_bytes(std::string text) {
    if (text.ends_with('B') || text.ends_with('b')) text.pop_back();
    std::ranges::transform(text, text.begin(), [](unsigned char byte) {
        return static_cast<char>(std::toupper(byte));
    });
    const auto bytes = text.ends_with('I') ? std::nullopt : parse_bytes(text);
    return bytes && is_capacity(*bytes) ? "; did you mean " + text + "?" : "";
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
        const auto number = parse_bytes(value);
        if (!number || !is_capacity(*number)) {
            return fail(
                "--capacity", value,
                "a power of two from 65536 (64K) to 268435456 (256M) bytes" + meant_bytes(value));
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
        const auto number = parse_number(value, kSmallestScale, kLargestScale);
        if (!number) return fail(option, value, "a number from 0.01 to 1000");
        options_.timeout_scale = *number;
    }

    // main() has given the process that form already, except for auto.
    void layout(const std::string& value) {
        if (!is_layout_value(value)) fail("--layout", value, kRightLayout);
        options_.detects_layout = value == kAutomaticLayout;
    }

    void producer(const std::string& value) {
        if (value != kAsPublished) return fail("--producer", value, kAsPublished);
        options_.as_published = true;
    }

    void explore(const std::string& value) {
        const auto settings = parse_explore(value);
        if (!settings) return fail("--explore", value, kRightExplore);
        options_.explore = *settings;
    }

    void stepper(const std::string& value) {
        const auto name = std::ranges::find(kStepperNames, value);
        if (name != std::end(kStepperNames)) {
            options_.stepper = static_cast<Stepper>(name - kStepperNames);
            return;
        }
        fail("--stepper", value, "auto, guards, watchpoints or single-step");
    }

    void jobs(const std::string& value) {
        const auto number = parse_decimal(value);
        if (!number || *number < 1 || *number > kMostJobs)
            return fail("--jobs", value, fmt::format("a number from 1 to {}", kMostJobs));
        options_.jobs = static_cast<unsigned>(*number);
    }
    void soak(const std::string& value) {
        const auto number = parse_number(value, kLeastSeconds, kMostSeconds);
        if (!number) return fail("--soak", value, "a number of seconds from 0.1 to 1000000");
        options_.soak_seconds = *number;
    }

    void reports(const std::vector<std::string>& values) {
        ReportChoice choice;
        const std::string wrong = add_reports(values, choice);
        if (parsed_.error.empty()) parsed_.error = wrong;
        options_.report = choice.format.value_or(ReportFormat::console);
        options_.more_reports = choice.more;
    }

    void patterns(std::string_view option, const std::vector<std::string>& values,
                  std::vector<std::string>& into) {
        for (const std::string& value : values) {
            if (value.empty()) return fail(option, value, "a pattern for case ids");
        }
        into = values;
    }

  private:
    void fail(std::string_view option, const std::string& value, std::string_view right) {
        if (parsed_.error.empty()) parsed_.error = wrong_value(option, value, right);
    }

    ParsedOptions& parsed_;
    Options& options_;
};

// Declares the options for more than one run of each case.
void declare_deeper(CLI::App& app, RawOptions& raw, Options& options) {
    app.add_option("--explore", raw.explore,
                   "how far interleavings are explored: off, for 25 s (quick, the default), "
                   "completely (deep), or for N seconds (at least 24 schedules of a case)")
        ->type_name("off|quick|deep|SECONDS");
    app.add_option("--stepper", raw.stepper,
                   "how the suite stops at single accesses (default auto: the best that works)")
        ->type_name("auto|guards|watchpoints|single-step");
    app.add_option("--save", raw.save,
                   "save each failure in a file in DIR, for replay, judge and shrink")
        ->type_name("DIR");
    app.add_option("--debug", raw.debug,
                   "run one case without time limits, and wait for a command on standard input at "
                   "each step")
        ->type_name("CASE");
    app.add_flag_callback(
        "--no-preflight", [&options] { options.preflight = false; },
        "run the cases even where a short run before them (as smoke) shows that the adapter "
        "cannot work");
    app.add_flag("--shared", options.shared,
                 "run also the cases with several consumers on one buffer");
    app.add_option("--producer", raw.producer,
                   "as-published: run also the cases in which the producer follows the published "
                   "rules of form B, C or D, and say what no consumer can prevent")
        ->type_name("as-published");
    app.add_option("--soak", raw.soak, "run also the case of random plays, for SECONDS")
        ->type_name("SECONDS");
    app.add_option("--stream", options.stream,
                   "run also the cases that emit the events of FILE, which kmesctl record has "
                   "written")
        ->type_name("FILE");
}

// Declares the options for the place of the run, and for facts about it and the consumer.
void declare_surroundings(CLI::App& app, RawOptions& raw, Options& options) {
    app.add_option("--known-failures", options.known_failures,
                   "failures that FILE lists with their message do not fail the run; a stale line "
                   "does")
        ->type_name("FILE");
    app.add_flag("--fix-known-failures", options.fix_known_failures,
                 "rewrite the file of --known-failures from the failures of this run");
    app.add_option("--consumer", options.consumer.name,
                   "name of the consumer in reports (default: that of the program)")
        ->type_name("NAME");
    app.add_option("--consumer-version", options.consumer.version,
                   "version of the consumer in reports")
        ->type_name("VERSION");
    app.add_option("--layout", raw.layout,
                   "form of the ring that the consumer is written for (default A); auto starts it "
                   "to find out")
        ->type_name("auto|A|B|C|D");
    app.add_option("--device", options.device,
                   "use the buffers of a test build of the kernel module, by its device "
                   "(/dev/kmes), instead of the runner's")
        ->type_name("PATH");
    app.add_option("--expect-unsupported", options.expect_unsupported,
                   "fail unless exactly those cases of the run that FILE lists are unsupported")
        ->type_name("FILE");
}

std::string footer(const std::vector<std::string>& commands) {
    std::string text;
    for (const std::string& command : commands) text += (text.empty() ? "" : ", ") + command;
    if (!text.empty()) {
        text = "Commands, as the first word: " + text + " (each has a --help of its own).\n";
    }
    return text +
           "The program to test, with its arguments, follows after --.\nExit status: 0 nothing "
           "failed and nothing is inconclusive; 1 a case failed; 2 bad usage;\n3 the suite or its "
           "set-up failed, or the program cannot be started; 4 inconclusive only;\n129, 130 and "
           "143 "
           "after SIGHUP, SIGINT and SIGTERM.";
}

void declare(CLI::App& app, RawOptions& raw, Options& options) {
    app.add_flag("--version", options.version,
                 "print the release, the commit and the versions of the ring, and exit");
    app.add_flag("--list", options.list, "list the cases and exit");
    app.add_option("--filter", raw.filters,
                   "run only the cases whose id matches GLOB (*, ?, [a-z]); repeatable")
        ->type_name("GLOB")
        ->take_all()
        ->allow_extra_args(false);
    app.add_option("--without", raw.without, "omit the cases whose id matches GLOB; repeatable")
        ->type_name("GLOB")
        ->take_all()
        ->allow_extra_args(false);
    app.add_option("--level", raw.level, "cases up to this level (default erratum)")
        ->type_name("must|should|erratum|robust");
    app.add_option("--cpus", raw.cpus, "number of CPUs, 1 to 64 (default 4)")->type_name("N");
    app.add_option("--capacity", raw.capacity,
                   "capacity of each buffer, a power of two from 64K to 256M (default 65536)")
        ->type_name("BYTES");
    app.add_option("--seed", raw.seed, "seed of everything random (default 1)")->type_name("N");
    app.add_option("--shuffle", raw.shuffle,
                   "run the cases in a random order from SEED (no verdict depends on it)")
        ->type_name("SEED");
    app.add_option("--jobs", raw.jobs,
                   "cases that run at the same time, 1 to 8 (default: one for each processor)")
        ->type_name("N");
    app.add_option("--timeout-scale", raw.timeout_scale,
                   "factor for every time limit (default KMES_TIMEOUT_SCALE, or 1)")
        ->type_name("X");
    app.add_option("--report", raw.reports, kReportHelp)
        ->type_name(kReportTypes)
        ->take_all()
        ->allow_extra_args(false);
    app.add_option("--report-file", raw.report_file,
                   "write the report to FILE, and print the console report, too")
        ->type_name("FILE");
    app.add_option("--explain", raw.explain, "print what a case does and expects, and exit")
        ->type_name("CASE");
    declare_deeper(app, raw, options);
    declare_surroundings(app, raw, options);
    app.add_flag("--fail-fast", options.fail_fast, "stop after the first case that fails");
    app.add_flag("-v", options.verbose,
                 "print a line and the details of every case, and every failure in full");
    app.add_flag("--quiet", options.quiet, "print only what did not pass, and the totals");
}

// Finds options that are correct alone but not together.
std::string find_contradiction(const CLI::App& app, const RawOptions& raw, const Options& options) {
    for (const auto& [option, value, right] :
         {std::tuple("--explain", &raw.explain, "the id of a case"),
          std::tuple("--debug", &raw.debug, "the id of a case"),
          std::tuple("--save", &raw.save, "a folder"),
          std::tuple("--device", &options.device, "the path of a device"),
          std::tuple("--stream", &options.stream, "a file of kmesctl record"),
          std::tuple("--consumer", &options.consumer.name, "a name"),
          std::tuple("--known-failures", &options.known_failures, "a file"),
          std::tuple("--expect-unsupported", &options.expect_unsupported, "a file")}) {
        if (app.count(option) > 0 && value->empty()) return wrong_value(option, "", right);
    }
    for (const char* option : {"--filter", "--without"}) {
        if (app.count("--debug") > 0 && app.count(option) > 0)
            return fmt::format("--debug runs one case and excludes {}", option);
    }
    if (app.count("--debug") > 0 && options.report != ReportFormat::console &&
        !options.report_file) {
        return fmt::format(
            "--debug uses standard output; with --report {} it also needs --report-file",
            report_format_name(options.report));
    }
    for (const char* option : {"--debug", "--device"}) {
        if (options.jobs > 1 && app.count(option) > 0)
            return fmt::format("{} runs one case at a time and excludes --jobs {}", option,
                               options.jobs);
    }
    if (options.fix_known_failures && options.known_failures.empty())
        return "--fix-known-failures also needs --known-failures FILE";
    if (options.as_published && options.layout.empty() && !options.detects_layout)
        return "--producer as-published also needs --layout B, C or D";
    if (options.quiet && options.verbose) return "--quiet excludes -v";
    const bool runs_nothing = options.version || options.list || !options.explain.empty();
    if (options.testee.empty() && !runs_nothing) {
        return "no program to test is named; expected kmes-conformance [OPTIONS...] -- PROGRAM "
               "ARGS...";
    }
    if (!options.testee.empty() && options.testee.front().empty()) {
        return "the name of the program after -- is empty";
    }
    return {};
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
    if (app.count("--report") > 0) checker.reports(raw.reports);
    if (app.count("--report-file") > 0) parsed.options.report_file = raw.report_file;
    if (app.count("--explore") > 0) checker.explore(raw.explore);
    if (app.count("--stepper") > 0) checker.stepper(raw.stepper);
    if (app.count("--jobs") > 0) checker.jobs(raw.jobs);
    if (app.count("--soak") > 0) checker.soak(raw.soak);
    if (app.count("--layout") > 0) checker.layout(raw.layout);
    if (app.count("--producer") > 0) checker.producer(raw.producer);
    if (!parsed.options.detects_layout) parsed.options.layout = other_layout();
    if (app.count("--save") > 0) parsed.options.save_folder = raw.save;
    parsed.options.debug = raw.debug;
    checker.patterns("--filter", raw.filters, parsed.options.filters);
    checker.patterns("--without", raw.without, parsed.options.without);
    parsed.options.explain = raw.explain;
    if (parsed.error.empty()) parsed.error = find_contradiction(app, raw, parsed.options);
}

}  // namespace

std::optional<std::uint64_t> parse_decimal(const std::string& text) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    // For an unsigned type, from_chars accepts no sign and no space.
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stopped != end) return std::nullopt;
    return value;
}

std::optional<std::uint64_t> parse_bytes(const std::string& text) {
    constexpr std::uint64_t kMost = std::uint64_t{1}
                                    << 40;  // larger than any meaningful value here
    std::string digits = text;
    unsigned shift = 0;
    for (const auto& [unit, bits] :
         {std::pair("K", 10u), std::pair("M", 20u), std::pair("G", 30u)}) {
        for (const char* rest : {"iB", ""}) {
            if (shift > 0 || !text.ends_with(std::string(unit) + rest)) continue;
            digits.resize(text.size() - 1 - std::string_view(rest).size());
            shift = bits;
        }
    }
    const auto number = parse_decimal(digits);
    if (!number || *number > kMost >> shift) return std::nullopt;
    return *number << shift;
}

std::optional<double> parse_number(const std::string& text, double least, double most) {
    double number = 0;
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc{} || stopped != end || !std::isfinite(number)) return std::nullopt;
    if (number < least || number > most) return std::nullopt;
    return number;
}

std::optional<ExploreSettings> parse_explore(const std::string& text) {
    ExploreSettings settings;
    if (text == "quick") return settings;
    if (text == "off") {
        settings.on = false;
        return settings;
    }
    if (text == "deep") {
        settings.seconds = 0;
        settings.deep = true;
        return settings;
    }
    const auto seconds = parse_number(text, kLeastSeconds, kMostSeconds);
    if (!seconds) return std::nullopt;
    settings.seconds = *seconds;
    settings.to_the_limit = true;
    return settings;
}

std::string wrong_value(std::string_view option, const std::string& value, std::string_view right) {
    return fmt::format("{} is \"{}\"; expected {}", option, printable(value), right);
}

ParsedOptions parse_options(const std::vector<std::string>& arguments,
                            const std::string& timeout_scale,
                            const std::vector<std::string>& commands) {
    ParsedOptions parsed;
    // The words after -- belong to the testee, whatever they look like.
    const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
    if (dashes != arguments.end()) parsed.options.testee.assign(dashes + 1, arguments.end());
    parsed.options.given.assign(arguments.begin(), dashes);
    CLI::App app("Tests a consumer of KMES events by the conformance suite.", "kmes-conformance");
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    RawOptions raw;
    declare(app, raw, parsed.options);
    app.footer(footer(commands));
    try {
        // CLI11 takes the last word first, and leaves the unparsed words.
        std::vector<std::string> words(arguments.begin(), dashes);
        std::ranges::reverse(words);
        app.parse(words);
    } catch (const CLI::CallForHelp&) {
        parsed.help = app.help();
        return parsed;
    } catch (const CLI::ParseError& error) {
        parsed.error = printable(describe(error, app, kProgramFollows));
        return parsed;
    }
    check(app, raw, timeout_scale, parsed);
    return parsed;
}

}  // namespace kmes::conformance
