// SPDX-License-Identifier: MIT
//
// The command `selftest`.
#include "conformance/main/selftest.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "conformance/main/command_line.h"
#include "conformance/main/options.h"
#include "conformance/main/selection.h"
#include "conformance/report/result.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kMostJobs = 64;
// Only a broken testee that spins for ever runs into a time limit. The others are seen to hang at
// once.
constexpr double kBrokenScale = 0.25;
// For another try, if a busy machine has played the case in part.
constexpr double kWholeScale = 4;
constexpr std::string_view kSoakSeconds = "30";
constexpr std::string_view kSearchSeconds = "120";
// If a testee's compiler is missing, a script that exits with this status replaces the testee.
constexpr std::string_view kNotBuilt = "exit 77";
constexpr std::size_t kStandInBytes = 1024;

enum class Result {
    right,      // a broken testee failed, a correct one passed
    wrong,      // the opposite
    trouble,    // the suite failed
    left_out,   // not built, or no case can show it
    cut_short,  // a signal ended its run
};

struct Outcome {
    Result result = Result::trouble;
    std::string text;
    double seconds = 0;
};

struct Settings {
    std::vector<std::string> filters;
    std::optional<bool> broken_only;
    std::string explore;
    std::uint64_t jobs = 1;
    std::uint64_t share = 1;
    std::uint64_t shares = 1;
    double scale = 1.0;
};

std::string read_file(const std::string& path, std::size_t most) {
    std::ifstream in(path, std::ios::binary);
    std::string text(most, '\0');
    in.read(text.data(), static_cast<std::streamsize>(most));
    text.resize(static_cast<std::size_t>(in.gcount()));
    return text;
}

bool exists(const std::string& path) {
    return std::ifstream(path).good();
}

// One run of the table.
class Selftest {
  public:
    Selftest(std::string folder, const Settings& settings, const SelftestRunner& runner,
             const Surroundings& around)
        : folder_(std::move(folder)), settings_(settings), runner_(runner), around_(around) {}

    int execute(std::vector<SelftestEntry> entries) {
        entries_ = std::move(entries);
        for (const SelftestEntry& entry : entries_) {
            name_width_ = std::max(name_width_, entry.name.size());
            language_width_ = std::max(language_width_, entry.language.size());
        }
        std::vector<std::thread> workers;
        for (std::uint64_t i = 0; i < settings_.jobs; ++i) {
            workers.emplace_back([this] { work(); });
        }
        for (std::thread& worker : workers) worker.join();
        return conclude();
    }

  private:
    struct Count {
        std::uint64_t right = 0;
        std::uint64_t all = 0;
    };

    void work() {
        for (;;) {
            const std::size_t index = next_++;
            if (index >= entries_.size() || around_.stop) return;
            const auto begin = Clock::now();
            Outcome outcome = run_entry(entries_[index]);
            outcome.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
            if (outcome.result == Result::cut_short) return;
            const std::lock_guard<std::mutex> lock(mutex_);
            add(entries_[index], outcome);
        }
    }

    Outcome run_entry(const SelftestEntry& entry) const {
        std::vector<std::string> program = entry.program;
        for (std::string& word : program) {
            // Prefix paths beside the runner; other words (python3, -u) stay.
            if (exists(folder_ + "/" + word)) word = folder_ + "/" + word;
        }
        if (entry.broken && entry.case_id.starts_with("-")) {
            return {Result::left_out, "no case yet " + entry.case_id, 0};
        }
        for (const std::string& word : program) {
            if (read_file(word, kStandInBytes).find(kNotBuilt) != std::string::npos) {
                return {Result::left_out, "not built: its compiler is missing", 0};
            }
        }
        const auto run = [&](std::vector<std::string> arguments) {
            arguments.push_back("--");
            arguments.insert(arguments.end(), program.begin(), program.end());
            return runner_(arguments);
        };
        if (!entry.broken) {
            const SelftestRun correct = run(arguments_of_correct());
            return correct.interrupted ? interrupted() : judge_correct(correct);
        }
        SelftestRun done = run(arguments_of_broken(entry, kBrokenScale));
        if (std::ranges::find(done.in_part, entry.case_id) != done.in_part.end())
            done = run(arguments_of_broken(entry, kWholeScale));
        if (done.interrupted) return interrupted();
        return judge_broken(entry, done);
    }

    Outcome interrupted() const {
        if (around_.stop) return {Result::cut_short, "", 0};
        return {Result::trouble, "a signal ended its run", 0};
    }

    std::vector<std::string> arguments_of_broken(const SelftestEntry& entry, double scale) const {
        std::vector<std::string> arguments{"--filter", entry.case_id, "--level", "robust",
                                           "--no-preflight"};
        const Case* the_case = find_case(around_.cases, entry.case_id);
        const Demand demand = the_case == nullptr ? Demand::always : the_case->demand;
        if (demand == Demand::shared) arguments.push_back("--shared");
        if (demand == Demand::soak) {
            arguments.insert(arguments.end(), {"--soak", std::string(kSoakSeconds)});
        }
        // A search that a broken testee needs is always made, whatever the options for correct
        // ones. It ends with its finding.
        const bool is_search = demand == Demand::explored;
        add_common(arguments, settings_.scale * scale,
                   is_search ? std::string(kSearchSeconds) : settings_.explore);
        return arguments;
    }

    std::vector<std::string> arguments_of_correct() const {
        std::vector<std::string> arguments;
        add_common(arguments, settings_.scale, settings_.explore);
        return arguments;
    }

    static void add_common(std::vector<std::string>& arguments, double scale,
                           const std::string& explore) {
        // The jobs of `selftest` are runs.
        arguments.insert(arguments.end(),
                         {"--timeout-scale", fmt::format("{}", scale), "--jobs", "1"});
        if (!explore.empty()) arguments.insert(arguments.end(), {"--explore", explore});
    }

    static Outcome judge_broken(const SelftestEntry& entry, const SelftestRun& run) {
        const bool failed =
            std::find(run.failed.begin(), run.failed.end(), entry.case_id) != run.failed.end();
        if (failed) return {Result::right, "failed by " + entry.case_id, 0};
        if (!run.trouble.empty() || run.status == kExitSuite || run.status == kExitUsage) {
            return {Result::trouble, run.trouble.empty() ? "the suite failed" : run.trouble, 0};
        }
        return {Result::wrong, "NOT failed by " + entry.case_id, 0};
    }

    static Outcome judge_correct(const SelftestRun& run) {
        if (run.status == kExitClean && run.trouble.empty()) return {Result::right, "passes", 0};
        if (!run.failed.empty()) {
            std::string text = "FAILED by";
            for (const std::string& id : run.failed) text += " " + id;
            return {Result::wrong, text, 0};
        }
        if (run.status == kExitInconclusive) return {Result::wrong, "INCONCLUSIVE", 0};
        return {Result::trouble, run.trouble.empty() ? "the suite failed" : run.trouble, 0};
    }

    void add(const SelftestEntry& entry, const Outcome& outcome) {
        ++done_;
        if (outcome.result == Result::left_out) {
            ++left_out_;
        } else {
            Count& count = counts_[entry.language][entry.broken];
            ++count.all;
            if (outcome.result == Result::right) ++count.right;
        }
        if (outcome.result == Result::wrong) ++wrong_;
        if (outcome.result == Result::trouble) ++trouble_;
        around_.out << fmt::format("{:<7}  {:<{}}  {:<{}}  {:>6.1f} s  {}\n",
                                   entry.broken ? "broken" : "correct", entry.language,
                                   language_width_, printable(entry.name), name_width_,
                                   outcome.seconds, printable(outcome.text))
                    << std::flush;
    }

    int conclude() {
        around_.out << "\n";
        Count sums[2];
        for (const auto& [language, both] : counts_) {
            for (const auto& [broken, count] : both) {
                sums[broken].right += count.right;
                sums[broken].all += count.all;
            }
            around_.out << line_of(language, both) << "\n";
        }
        around_.out << line_of("all", {{false, sums[0]}, {true, sums[1]}});
        if (left_out_ > 0) around_.out << fmt::format("; {} left out", left_out_);
        around_.out << "\n" << std::flush;
        if (around_.stop) {
            return say(
                around_, around_.stop.status_or(kExitSuite),
                fmt::format("interrupted: {} of {} testees were run", done_, entries_.size()));
        }
        return finish_output(around_, trouble_ > 0 ? kExitSuite
                                      : wrong_ > 0 ? kExitFailed
                                                   : kExitClean);
    }

    std::string line_of(const std::string& name, const std::map<bool, Count>& both) const {
        std::string text;
        for (const bool broken : {true, false}) {
            const auto found = both.find(broken);
            if (found == both.end() || found->second.all == 0) continue;
            text +=
                fmt::format("{}{} of {} {}", text.empty() ? "" : ", ", found->second.right,
                            found->second.all, broken ? "broken ones failed" : "correct ones pass");
        }
        if (text.empty()) text = "nothing was run";
        return fmt::format("{:<{}}  {}", name + ":", language_width_ + 1, text);
    }

    std::string folder_;
    const Settings& settings_;
    const SelftestRunner& runner_;
    const Surroundings& around_;
    std::vector<SelftestEntry> entries_;
    std::size_t name_width_ = 0;
    std::size_t language_width_ = 3;
    std::atomic<std::size_t> next_{0};
    std::mutex mutex_;  // of all following members, and of the output
    std::map<std::string, std::map<bool, Count>> counts_;
    std::size_t done_ = 0;
    std::uint64_t wrong_ = 0;
    std::uint64_t trouble_ = 0;
    std::uint64_t left_out_ = 0;
};

bool is_wanted(const SelftestEntry& entry, const Settings& settings) {
    if (settings.broken_only && *settings.broken_only != entry.broken) return false;
    if (settings.filters.empty()) return true;
    return std::any_of(settings.filters.begin(), settings.filters.end(),
                       [&entry](const std::string& pattern) {
                           return ::fnmatch(pattern.c_str(), entry.name.c_str(), 0) == 0;
                       });
}

// "2/5" -> 2 and 5.
bool parse_share(const std::string& text, Settings& settings) {
    const std::size_t slash = text.find('/');
    if (slash == std::string::npos) return false;
    const auto share = parse_decimal(text.substr(0, slash));
    const auto shares = parse_decimal(text.substr(slash + 1));
    if (!share || !shares || *share < 1 || *share > *shares) return false;
    settings.share = *share;
    settings.shares = *shares;
    return true;
}

struct RawSettings {
    std::string jobs;
    std::string only;
    std::string share;
    std::string scale;
};

void declare(CLI::App& app, RawSettings& raw, Settings& settings) {
    app.add_option("--jobs", raw.jobs, "testees at the same time (default: one for each processor)")
        ->type_name("N");
    app.add_option("--filter", settings.filters, "only testees whose name matches GLOB; repeatable")
        ->type_name("GLOB")
        ->take_all()
        ->allow_extra_args(false);
    app.add_option("--only", raw.only, "only the broken ones, or only the correct ones")
        ->type_name("broken|correct");
    app.add_option("--share", raw.share, "only every M-th testee, from the N-th on")
        ->type_name("N/M");
    app.add_option("--explore", settings.explore, "passed on to the runs (default: quick)")
        ->type_name("off|quick|deep|SECONDS");
    app.add_option("--timeout-scale", raw.scale,
                   "factor for every time limit (default KMES_TIMEOUT_SCALE, or 1)")
        ->type_name("X");
    app.footer(
        "Exit status: 0 every broken testee is failed by the case that is meant for it, and "
        "every\ncorrect one passes; 1 not so; 2 bad usage; 3 the suite or its set-up failed; 130 "
        "and "
        "143 after\nSIGINT and SIGTERM.");
}

// Returns what is wrong with the options; empty: nothing.
std::string check(const CLI::App& app, const RawSettings& raw, const std::string& environment_scale,
                  Settings& settings) {
    settings.jobs = std::max(1u, std::thread::hardware_concurrency());
    if (app.count("--jobs") > 0) {
        const auto jobs = parse_decimal(raw.jobs);
        if (!jobs || *jobs < 1 || *jobs > kMostJobs) {
            return wrong_value("--jobs", raw.jobs, "a number from 1 to 64");
        }
        settings.jobs = *jobs;
    }
    if (app.count("--only") > 0) {
        if (raw.only != "broken" && raw.only != "correct") {
            return wrong_value("--only", raw.only, "broken or correct");
        }
        settings.broken_only = raw.only == "broken";
    }
    if (app.count("--share") > 0 && !parse_share(raw.share, settings)) {
        return wrong_value("--share", raw.share, "N/M with N from 1 to M");
    }
    if (app.count("--explore") > 0 && !parse_explore(settings.explore)) {
        return wrong_value("--explore", settings.explore, kRightExplore);
    }
    const bool given = app.count("--timeout-scale") > 0;
    const std::string& scale = given ? raw.scale : environment_scale;
    if (given || !scale.empty()) {
        const auto factor = parse_number(scale, 0.04, 1000);
        if (!factor) {
            return wrong_value(given ? "--timeout-scale" : "KMES_TIMEOUT_SCALE", scale,
                               "a number from 0.04 to 1000");
        }
        settings.scale = *factor;
    }
    return {};
}

int run_selftest(const std::string& folder, const SelftestRunner& runner,
                 const std::vector<std::string>& arguments, const Surroundings& around) {
    const CommandWords words = split_words(arguments);
    CLI::App app(
        "Every broken testee through the case that is meant for it, and every correct one "
        "through a default run.",
        "kmes-conformance selftest");
    RawSettings raw;
    Settings settings;
    declare(app, raw, settings);
    if (const auto status = parse_words(app, words.own, around)) return *status;
    std::string wrong = check(app, raw, around.timeout_scale, settings);
    if (wrong.empty() && words.has_program)
        wrong = "this command takes no program: the table names them";
    if (!wrong.empty()) return say_usage("selftest", wrong, around);
    const std::string path = folder + "/main/selftest.table";
    if (!exists(path)) {
        return say(around, kExitSuite,
                   "selftest: the testees are not beside this program; in the repository of the "
                   "suite, `tools/kmes conformance selftest` builds them");
    }
    std::ifstream in(path);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    SelftestTable table = parse_selftest_table(text);
    if (!table.error.empty()) {
        return say(around, kExitSuite,
                   fmt::format("selftest: {}: {}", printable(path), table.error));
    }
    std::vector<SelftestEntry> wanted;
    for (SelftestEntry& entry : table.entries) {
        if (is_wanted(entry, settings)) wanted.push_back(std::move(entry));
    }
    if (wanted.empty()) return say_usage("selftest", "no testee has this name", around);
    std::vector<SelftestEntry> share;
    for (std::size_t i = settings.share - 1; i < wanted.size(); i += settings.shares) {
        share.push_back(std::move(wanted[i]));
    }
    if (share.empty()) return say_usage("selftest", "this share has no testee", around);
    return Selftest(folder, settings, runner, around).execute(std::move(share));
}

}  // namespace

Command selftest_command(std::string folder, SelftestRunner runner) {
    return {"selftest", [folder = std::move(folder), runner = std::move(runner)](
                            const auto& arguments, const auto& around) {
                return run_selftest(folder, runner, arguments, around);
            }};
}

}  // namespace kmes::conformance
