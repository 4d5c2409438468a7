// SPDX-License-Identifier: MIT
//
// See case_run.h.
#include "conformance/main/case_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <ctime>
#include <exception>
#include <functional>
#include <optional>
#include <sstream>
#include <utility>

#include "conformance/failure/failure_file.h"
#include "conformance/main/case_lists.h"
#include "conformance/main/case_pool.h"
#include "conformance/main/drawings.h"
#include "conformance/main/evidence.h"
#include "conformance/main/replay_command.h"
#include "conformance/main/report_files.h"
#include "conformance/main/selection.h"
#include "conformance/main/shard.h"
#include "conformance/report/console.h"
#include "conformance/report/output_file.h"
#include "conformance/report/result.h"
#include "conformance/report/text.h"

namespace kmes::conformance {

StageSettings settings_of(const Options& options, const Surroundings& around) {
    StageSettings settings;
    settings.testee = options.testee;
    settings.cpus = options.cpus;
    settings.capacity_bytes = options.capacity_bytes;
    settings.seed = options.seed;
    settings.timeout_scale = options.timeout_scale;
    settings.verbose = options.verbose;
    settings.explore = options.explore;
    settings.stepper = options.stepper;
    settings.shared = options.shared;
    settings.as_published = options.as_published;
    settings.soak_seconds = options.soak_seconds;
    settings.stream = options.stream;
    settings.device = options.device;
    settings.layout = options.layout;
    settings.debug = !options.debug.empty();
    if (settings.debug) {
        settings.debugger = around.debugger;
        settings.record_accesses = true;
    }
    settings.stop = &around.stop;
    return settings;
}

std::size_t longest_id(const std::vector<const Case*>& cases) {
    std::size_t width = 0;
    for (const Case* each : cases) width = std::max(width, each->id.size());
    return width;
}

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kSignOfLife{30};

double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Prints to two streams at once.
class TeeBuffer : public std::streambuf {
  public:
    TeeBuffer(std::ostream& first, std::ostream& second) : first_(first), second_(second) {}

  protected:
    int overflow(int byte) override {
        if (byte == traits_type::eof()) return 0;
        first_.put(static_cast<char>(byte));
        second_.put(static_cast<char>(byte));
        return first_.good() ? byte : traits_type::eof();
    }
    std::streamsize xsputn(const char* bytes, std::streamsize count) override {
        first_.write(bytes, count);
        second_.write(bytes, count);
        return first_.good() ? count : 0;
    }
    int sync() override {
        first_.flush();
        return first_.good() ? 0 : -1;
    }

  private:
    std::ostream& first_;
    std::ostream& second_;
};

// Whether a file gets the texts of the console report. It is read elsewhere than on this terminal.
bool writes_texts_to_files(const Options& options) {
    return options.report_file ||
           std::ranges::any_of(options.more_reports, [](const ReportTarget& target) {
               return target.format != ReportFormat::json && target.format != ReportFormat::html;
           });
}

DrawingOptions drawing_options(const Options& options, const Surroundings& around) {
    const bool is_for_files = writes_texts_to_files(options);
    DrawingOptions drawing;
    drawing.width = is_for_files ? 100 : around.out_columns;
    drawing.colour = around.out_has_colour && !is_for_files;
    drawing.unicode = around.out_is_unicode && !is_for_files;
    return drawing;
}

// If the user gave a number of seconds, only the selected cases share it.
double seconds_for(const ExploreSettings& explore, const std::vector<const Case*>& cases) {
    double share = 0;
    for (const Case* each : cases) share += each->explore_share;
    return explore.to_the_limit && share > 0 ? explore.seconds / share : explore.seconds;
}

// The text of the option on a command line.
std::string explore_text(const ExploreSettings& explore) {
    if (!explore.on) return "off";
    if (explore.deep) return "deep";
    return explore.to_the_limit ? fmt::format("{}", explore.seconds) : "quick";
}

RunOptions run_options(const Options& options) {
    RunOptions run;
    run.level = level_name(options.level.value_or(kDefaultLevel));
    run.explore = explore_text(options.explore);
    run.timeout_scale = options.timeout_scale;
    run.filters = options.filters;
    run.without = options.without;
    run.shared = options.shared;
    run.as_published = options.as_published;
    run.soak_seconds = options.soak_seconds;
    run.stream = options.stream;
    run.device = options.device;
    run.layout = options.layout;
    return run;
}

// Counts the cases of a run without options, and those that an option of this run adds.
CasesOfLevels cases_of_levels(const std::vector<Case>& cases, const StageSettings& settings) {
    CasesOfLevels counts{};
    for (const Case& each : cases) {
        const bool is_usual = each.demand == Demand::always || each.demand == Demand::explored;
        if (is_usual || is_demanded(each, settings))
            ++counts.at(static_cast<std::size_t>(each.level));
    }
    return counts;
}

// One run of the selected cases.
class Run {
  public:
    Run(const Options& options, const Surroundings& around, std::vector<const Case*> cases,
        std::optional<Shard> shard = std::nullopt)
        : options_(options),
          around_(around),
          cases_(std::move(cases)),
          drawings_(around, drawing_options(options, around), drawn(options)),
          settings_(settings_of(options, around)),
          lists_(options, around) {
        // A case has the same part of the seconds in each shard.
        settings_.explore.seconds = seconds_for(settings_.explore, cases_);
        report_.shard = std::move(shard);
        if (report_.shard) take_shard(*report_.shard, options.explore, cases_);
        report_.testee = options.testee;
        report_.consumer = options.consumer;
        if (report_.consumer.name.empty())
            report_.consumer.name =
                options.testee.front().substr(options.testee.front().rfind('/') + 1);
        report_.cpus = options.cpus;
        report_.capacity_bytes = options.capacity_bytes;
        report_.seed = options.seed;
        report_.suite = around.suite;
        report_.suite_cases = cases_of_levels(around.cases, settings_);
        report_.machine = around.machine;
        report_.began = std::time(nullptr);
        report_.options = run_options(options);
    }

    int execute() {
        if (const std::string twice = find_repeated_file(files()); !twice.empty())
            return say(around_, kExitUsage, twice);
        if (options_.report_file) {
            const OutputFile::Status status = file_.open(*options_.report_file, &around_.stop);
            if (status != OutputFile::Status::ok) {
                return say(around_,
                           status == OutputFile::Status::bad_path ? kExitUsage : kExitSuite,
                           file_.error());
            }
        }
        if (const int status = more_files_.open(options_.more_reports, &around_.stop); status != 0)
            return say(around_, status, more_files_.error());
        if (options_.save_folder) {
            const std::string error = save_folder_.open(*options_.save_folder);
            if (!error.empty()) return say(around_, kExitUsage, error);
        }
        if (const int status = lists_.open(report_.shard.has_value()); status != 0) return status;
        const std::string problem = around_.check_set_up(settings_);
        if (!problem.empty()) return say(around_, kExitSuite, printable(problem));
        const Clock::time_point begin = Clock::now();
        const Preflight found = check_adapter();
        if (found.is_not_startable) return say(around_, kExitSuite, printable(found.first));
        report_.preflight = found.mistakes;
        report_.preflight_status = found.status;
        if (report_.preflight.empty() && around_.describe_stepper)
            report_.stepper = around_.describe_stepper(settings_, found.cpus);
        run_cases(begin);
        if (!found.first.empty() && !prints_console())
            say(around_, report_.preflight_status,
                "the adapter cannot work: " + printable(found.first) +
                    " (--no-preflight runs the cases nevertheless)");
        if (report_.interrupted) say_interrupted();
        if (!write_reports() || save_failed_ || has_trouble_) return kExitSuite;
        if (report_.interrupted) return around_.stop.status_or(kExitSuite);
        const int status = exit_status(report_);
        for (const ListDifference& each : report_.differences) say(around_, status, each.message);
        return status;
    }

  private:
    static bool prints_console(const Options& options) {
        return options.report == ReportFormat::console || options.report_file;
    }
    bool prints_console() const { return prints_console(options_); }

    static Drawings::Drawn drawn(const Options& options) {
        if (!draws_traces(options)) return Drawings::Drawn::none;
        return options.verbose ? Drawings::Drawn::all : Drawings::Drawn::best;
    }

    // Checks whether any case can pass.
    Preflight check_adapter() const {
        // A debugging person sees the mistakes anyway, and a device has buffers of its own.
        if (!around_.preflight || !options_.preflight || settings_.debug ||
            !options_.device.empty())
            return {};
        Preflight found = around_.preflight(settings_);
        if (around_.stop) return {};
        if (found.status == kExitFailed && around_.other_form) {
            const std::string other = around_.other_form(options_.testee, options_.timeout_scale);
            if (around_.stop) return {};
            if (!other.empty()) {
                found.mistakes = "  " + printable(other) + "\n" + found.mistakes;
                found.first = other;
            }
        }
        return found;
    }

    // JSON contains the trace of the first run of a case, because it is requested for thousands of
    // runs.
    static bool draws_traces(const Options& options) {
        return prints_console(options) || options.report == ReportFormat::html ||
               std::ranges::any_of(options.more_reports, [](const ReportTarget& target) {
                   return target.format != ReportFormat::json;
               });
    }

    // The files that the run writes, and those that a report must not replace.
    std::vector<NamedFile> files() const {
        std::vector<NamedFile> files = named_files(options_.more_reports);
        const auto add = [&](const std::string& option, const std::string& path, bool is_written) {
            if (!path.empty()) files.push_back({option + " " + path, path, is_written});
        };
        add("--report-file", options_.report_file.value_or(""), true);
        add("--known-failures", options_.known_failures, options_.fix_known_failures);
        add("--expect-unsupported", options_.expect_unsupported, false);
        add("--stream", options_.stream, false);
        return files;
    }

    // Fills in the differences from the lists, and fixes a list of a whole run.
    void settle_lists() {
        const std::string trouble = lists_.settle(report_, !has_trouble_);
        if (!trouble.empty()) note_trouble(trouble);
    }

    // `begin` is before the check of the adapter.
    void run_cases(Clock::time_point begin) {
        ConsoleOptions console_options;
        console_options.verbose = options_.verbose;
        console_options.quiet = options_.quiet;
        console_options.command = around_.command;
        console_options.given = shell_command(options_.given);
        console_options.fail_fast = options_.fail_fast;
        console_options.colour = around_.out_has_colour && !writes_texts_to_files(options_);
        console_options.id_width = longest_id(cases_);
        if (!around_.error_shows_progress) console_options.sign_of_life = kSignOfLife;
        TeeBuffer tee(around_.out, console_text_);
        std::ostream both(&tee);
        ConsoleReport console(both, console_options);
        ProgressLine progress(around_.error_shows_progress ? &around_.error : nullptr);
        has_result_.assign(cases_.size(), false);
        if (prints_console()) console.begin(report_, cases_.size());
        // Finished cases are reported, whatever happens in between.
        if (report_.preflight.empty()) guarded([&] { run_each(console, progress); });
        for (std::size_t i = 0; i < cases_.size(); ++i) {
            if (!has_result_[i]) report_.not_run.emplace_back(cases_[i]->id);
        }
        draw_traces(progress);
        report_.interrupted = !report_.not_run.empty() && around_.stop;
        report_.seconds = seconds_since(begin);
        guarded([&] { settle_lists(); });
        if (prints_console()) guarded([&] { console.end(report_); });
    }

    // Whether somebody still reads the output: the reader of a pipe may have gone.
    bool is_wanted() const {
        return around_.out.good() || options_.report_file || options_.save_folder ||
               !options_.more_reports.empty();
    }

    // A case that writes to a terminal, or uses buffers of the kernel module, runs alone.
    unsigned jobs() const {
        if (settings_.debug || !settings_.device.empty()) return 1;
        return options_.jobs != 0 ? options_.jobs : around_.jobs;
    }

    // Plays the cases until the run ends. The results are in the order of the cases.
    void run_each(ConsoleReport& console, ProgressLine& progress) {
        play_cases(
            cases_, jobs(),
            {.play = [this](const Case& each, int processor) { return play(each, processor); },
             .take =
                 [&](std::size_t index, PlayedCase&& played) {
                     progress.clear();
                     return take(index, played, console);
                 },
             .is_over = [this] { return static_cast<bool>(around_.stop); },
             .wait_for =
                 [&](std::size_t index) {
                     progress.show(index + 1, cases_.size(), summarise(report_.results).fail,
                                   cases_[index]->id);
                 }});
        progress.clear();
    }

    // Appends the result of a case to the report. Returns false to end the run.
    bool take(std::size_t index, const PlayedCase& played, ConsoleReport& console) {
        add_result(*cases_[index], played.outcome, played.seconds);
        has_result_[index] = true;
        const CaseResult& result = report_.results.back();
        if (prints_console()) console.add(result);
        const bool is_bad =
            result.verdict == Verdict::fail || result.verdict == Verdict::suite_error;
        return !(options_.fail_fast && is_bad) && is_wanted();
    }

    // Draws the traces, for which some cases run once more. After an interrupt they do not.
    void draw_traces(ProgressLine& progress) {
        const std::size_t failed = summarise(report_.results).fail;
        if (failed > 0)
            progress.show(cases_.size(), cases_.size(), failed, "traces of the failures");
        guarded([&] { drawings_.finish(report_); });
        progress.clear();
    }

    // What happens after a case has ended must not lose its result.
    void guarded(const std::function<void()>& part) {
        try {
            part();
        } catch (const std::exception& error) {
            note_trouble(error.what());
        } catch (...) {
            note_trouble("an unknown exception");
        }
    }

    void note_trouble(const std::string& what) {
        has_trouble_ = true;
        say(around_, kExitSuite, "the report is not complete: " + printable(what));
    }

    void add_result(const Case& the_case, const CaseOutcome& outcome, double seconds) {
        report_.results.push_back(result_of(the_case, outcome, seconds));
        CaseResult& result = report_.results.back();
        if (options_.save_folder && outcome.verdict == Verdict::fail)
            guarded([&] { save(the_case, outcome, result); });
        guarded([&] { drawings_.add(the_case, settings_for(-1), outcome, report_); });
    }

    // Called in any thread.
    StageSettings settings_for(int processor) const {
        StageSettings settings = settings_;
        settings.processor = processor;
        settings.patience = patience_after(cases_hung_);
        return settings;
    }

    // Called in any thread. Returns nullopt if a signal cut the case short. Its verdict is then
    // meaningless, because a signal to the whole control group may have killed the testee too.
    std::optional<PlayedCase> play(const Case& the_case, int processor) {
        const Clock::time_point begin = Clock::now();
        PlayedCase played;
        try {
            StageSettings settings = settings_for(processor);
            if (report_.shard && is_in_every_shard(the_case, options_.explore))
                settings.part = {report_.shard->index, report_.shard->total};
            played.outcome = around_.run_on_stage(the_case, settings);
        } catch (const std::exception& error) {
            played.outcome.message =
                std::string("the case ended with an exception: ") + error.what();
        } catch (...) {
            played.outcome.message = "the case ended with an unknown exception";
        }
        played.seconds = seconds_since(begin);
        if (around_.stop) return std::nullopt;
        if (played.outcome.has_hung) ++cases_hung_;
        return played;
    }

    CaseResult result_of(const Case& the_case, const CaseOutcome& outcome, double seconds) const {
        CaseResult result;
        result.id = the_case.id;
        result.level = the_case.level;
        result.verdict = outcome.verdict;
        result.clause = outcome.clause;
        // A verdict on the testee needs a clause: if it has none, it gets that of the case.
        const bool is_judged = outcome.verdict == Verdict::fail ||
                               outcome.verdict == Verdict::inconclusive ||
                               outcome.verdict == Verdict::unsupported;
        if (result.clause.empty() && is_judged) result.clause = the_case.clause();
        result.message = outcome.message;
        if (outcome.verdict == Verdict::fail) {
            result.listed_clause = result.clause;
            result.listed_message = outcome.message;
            result.what_is_done = the_case.description;
            result.what_is_right = the_case.expectation;
        }
        result.title = the_case.title;
        result.details = outcome.details;
        if (outcome.verdict == Verdict::fail) take_evidence(outcome, result);
        result.seconds = seconds;
        result.explored = outcome.explored;
        result.replay = replay_command(options_, around_.command, the_case);
        return result;
    }

    // A consumer that spins, or has wrong timeouts, may hang in every case. The first case gives it
    // all the time that a correct consumer could need. The others get less, so that the run takes
    // minutes and not an hour.
    static double patience_after(unsigned cases) {
        constexpr double kLeast = 1.0 / 64;
        return std::max(kLeast, std::ldexp(1.0, -2 * static_cast<int>(cases)));
    }

    void save(const Case& the_case, const CaseOutcome& outcome, CaseResult& result) {
        const FailureFolder::Saved saved =
            save_folder_.save(make_failure_file(the_case, settings_, outcome, report_.stepper));
        result.saved = saved.path;
        if (saved.error.empty()) return;
        save_failed_ = true;
        say(around_, kExitSuite, saved.error);
    }

    void say_interrupted() const {
        say(around_, kExitSuite,
            fmt::format("interrupted: {} of {} cases did not run, from {} on",
                        report_.not_run.size(), cases_.size(), report_.not_run.front()));
    }

    bool write_reports() {
        const auto text_of = [this](ReportFormat format) {
            return format == ReportFormat::console && prints_console()
                       ? console_text_.str()
                       : report_text(report_, format);
        };
        bool is_written = true;
        const auto say_trouble = [&](const std::string& line) {
            is_written = false;
            say(around_, kExitSuite, line);
        };
        // Each report is made and written, whatever happens to the others.
        try {
            const std::string text = text_of(options_.report);
            if (!prints_console()) around_.out << text << std::flush;
            if (options_.report_file && !file_.commit(text)) say_trouble(file_.error());
        } catch (const std::exception& error) {
            say_trouble(unmade_report(options_.report, error));
        }
        if (!more_files_.commit(text_of)) say_trouble(more_files_.error());
        if (!around_.out.good()) say_trouble("cannot write the report to standard output");
        return is_written;
    }

    const Options& options_;
    const Surroundings& around_;
    std::vector<const Case*> cases_;
    Drawings drawings_;
    StageSettings settings_;
    RunReport report_;
    OutputFile file_;
    ReportFiles more_files_;
    CaseLists lists_;
    FailureFolder save_folder_;
    bool save_failed_ = false;
    bool has_trouble_ = false;
    std::atomic<unsigned> cases_hung_{0};
    std::vector<bool> has_result_;  // by index in cases_
    std::ostringstream console_text_;
};

}  // namespace

int run_selected_cases(const Options& options, const Surroundings& around,
                       std::vector<const Case*> cases, std::optional<Shard> shard) {
    return Run(options, around, std::move(cases), std::move(shard)).execute();
}

}  // namespace kmes::conformance
