// SPDX-License-Identifier: MIT
//
// See commands.h.
#include "conformance/failure/commands.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "conformance/failure/failure_file.h"
#include "conformance/failure/judge_file.h"
#include "conformance/failure/schedule_text.h"
#include "conformance/failure/shrink.h"
#include "conformance/report/result.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

constexpr std::size_t kCasesNamed = 6;

int say(const FailureTools& tools, int status, const std::string& line) {
    tools.error << "kmes-conformance: " << line << "\n" << std::flush;
    return status;
}

int say_interrupted(const FailureTools& tools, const std::string& text) {
    return say(tools, tools.stop.status_or(kExitSuite), "interrupted" + text);
}

int done(const FailureTools& tools, int status) {
    tools.out.flush();
    if (tools.out.good()) return status;
    return say(tools, kExitSuite, "cannot write the result to standard output");
}

std::string text_of(const Finding& finding) {
    return fmt::format("{} {}: {}", printable(finding.clause), finding_name(finding.code),
                       printable(finding.message));
}

void print_findings(const FailureTools& tools, const std::vector<Finding>& findings,
                    std::string_view mark) {
    for (const Finding& finding : findings) tools.out << "  " << mark << text_of(finding) << "\n";
}

void print_head(const FailureTools& tools, const FailureFile& file) {
    tools.out << fmt::format("case     {} ({})\n", printable(file.case_id), level_name(file.level));
    tools.out << fmt::format("testee   {}\n", printable(shell_command(file.settings.testee)));
    tools.out << fmt::format("the file {}: {}\n", printable(file.clause), printable(file.message));
}

std::string in_words(const FailureTools& tools, const Case& the_case, const Move& move) {
    if (the_case.describe_move) return printable(the_case.describe_move(move));
    return tools.describe ? printable(tools.describe(move)) : figures_of(move);
}

void print_schedule(const FailureTools& tools, const Case& the_case, const Schedule& schedule) {
    if (schedule.drawn)
        tools.out << fmt::format("  moves as drawn from seed {}\n", schedule.seed);
    else if (schedule.moves.empty())
        tools.out << "  no moves: the scenario alone\n";
    for (std::size_t i = 0; i < schedule.moves.size(); ++i)
        tools.out << fmt::format("  {}. {}\n", i + 1, in_words(tools, the_case, schedule.moves[i]));
}

// The file, its case, and the settings for a run. `status`: 0, or the exit status after a printed
// error.
struct Loaded {
    int status = kExitClean;
    FailureFile file;
    const Case* the_case = nullptr;
    StageSettings settings;
};

int load_file(const std::string& path, const FailureTools& tools, FailureFile& file) {
    ReadFailure read = read_failure_file(path);
    if (!read.error.empty()) return say(tools, kExitUsage, read.error);
    file = std::move(read.file);
    if (file.settings.layout == other_layout()) return kExitClean;
    const Layout* form =
        file.settings.layout.empty() ? &all_layouts().front() : find_layout(file.settings.layout);
    if (tools.change_layout) return say(tools, kExitSuite, tools.change_layout(*form));
    return say(tools, kExitUsage,
               fmt::format("{}: the failure is of form {} of the layout, and this run of form {}",
                           printable(path), form->name, layout().name));
}

Loaded load_for_run(const std::string& path, const std::vector<std::string>& testee,
                    std::optional<double> timeout_scale, const FailureTools& tools) {
    Loaded loaded;
    loaded.status = load_file(path, tools, loaded.file);
    if (loaded.status != kExitClean) return loaded;
    loaded.the_case = find_case(tools.cases, loaded.file.case_id);
    if (loaded.the_case == nullptr) {
        loaded.status = say(tools, kExitUsage,
                            fmt::format("{}: case is \"{}\", which this suite does not have; "
                                        "--list names those that it has",
                                        printable(path), printable(loaded.file.case_id)));
        return loaded;
    }
    if (loaded.file.settings.schedule && loaded.file.settings.schedule->left_out != 0) {
        loaded.status =
            say(tools, kExitUsage,
                fmt::format("{}: schedule.left_out is {}: the schedule had more moves than a file "
                            "keeps, so it cannot be played; --filter '{}' runs the whole case",
                            printable(path), loaded.file.settings.schedule->left_out,
                            printable(loaded.file.case_id)));
        return loaded;
    }
    if (loaded.file.settings.schedule && loaded.the_case->schedule_problem) {
        const std::string wrong = loaded.the_case->schedule_problem(*loaded.file.settings.schedule);
        if (!wrong.empty()) {
            loaded.status = say(tools, kExitUsage,
                                fmt::format("{}: schedule: {}", printable(path), printable(wrong)));
            return loaded;
        }
    }
    if (!testee.empty()) loaded.file.settings.testee = testee;
    if (timeout_scale) loaded.file.settings.timeout_scale = *timeout_scale;
    loaded.settings = loaded.file.settings;
    loaded.settings.stop = &tools.stop;
    const std::string problem = tools.check_set_up(loaded.settings);
    if (!problem.empty()) loaded.status = say(tools, kExitSuite, printable(problem));
    return loaded;
}

// Two failures are the same if both are equal: the finding and the clause.
struct Kind {
    std::string code;
    std::string clause;
    bool operator==(const Kind&) const = default;
};

Kind kind_of(const RunRecord* record, const std::string& clause) {
    if (record == nullptr || record->findings.empty()) return {"", clause};
    const Finding& first = record->findings.front();
    return {std::string(finding_name(first.code)), first.clause};
}

bool is_same_failure(const FailureFile& file, const CaseOutcome& outcome) {
    return outcome.verdict == Verdict::fail &&
           kind_of(outcome.record.get(), outcome.clause) == kind_of(&file.record, file.clause);
}

int status_of(Verdict verdict) {
    switch (verdict) {
        case Verdict::pass:
            return kExitClean;
        case Verdict::fail:
            return kExitFailed;
        case Verdict::inconclusive:
        case Verdict::unsupported:
            return kExitInconclusive;
        case Verdict::suite_error:
            break;
    }
    return kExitSuite;
}

std::string_view result_of(const FailureFile& file, const CaseOutcome& outcome) {
    if (is_same_failure(file, outcome)) return "the case fails again in the same way";
    switch (outcome.verdict) {
        case Verdict::pass:
            return "the case passes";
        case Verdict::fail:
            return "the case fails in another way";
        case Verdict::inconclusive:
            return "inconclusive: this run could not show the failure";
        case Verdict::unsupported:
            return "unsupported here";
        case Verdict::suite_error:
            break;
    }
    return "the suite failed";
}

void print_outcome(const FailureTools& tools, const FailureFile& file, const CaseOutcome& outcome,
                   bool verbose) {
    tools.out << fmt::format("now      {}\n", result_of(file, outcome));
    if (outcome.verdict == Verdict::pass) return;
    tools.out << fmt::format("         {}{}{}\n", printable(outcome.clause),
                             outcome.clause.empty() ? "" : ": ", printable(outcome.message));
    if (tools.drawing && outcome.record) tools.out << tools.drawing(*outcome.record);
    if (verbose) tools.out << printable(outcome.details, true);
}

// The explored cases for the clause of the file, or for a part of it.
std::string explored_cases(const FailureTools& tools, const FailureFile& file) {
    std::string names;
    std::size_t count = 0;
    for (const Case& each : tools.cases) {
        if (each.demand != Demand::explored || count == kCasesNamed) continue;
        const bool related = file.clause.starts_with(each.clause()) ||
                             each.clause().starts_with(file.clause) ||
                             file.case_id.starts_with(each.clause());
        if (!related) continue;
        names += (count == 0 ? "" : ", ") + std::string(each.id);
        ++count;
    }
    return names;
}

std::string smallest_path(const std::string& path) {
    constexpr std::string_view kSuffix = ".json";
    const bool named = path.size() > kSuffix.size() && path.ends_with(kSuffix);
    return (named ? path.substr(0, path.size() - kSuffix.size()) : path) + ".smallest.json";
}

void print_shrunk(const FailureTools& tools, const Loaded& loaded, const Shrunk& shrunk,
                  std::uint32_t maximum_runs) {
    const FailureFile& file = loaded.file;
    const Case& the_case = *loaded.the_case;
    tools.out << fmt::format("the schedule of the file, {} of {}:\n",
                             file.record.schedule->moves.size() == 1 ? "1 move" : "moves",
                             printable(file.record.schedule->scenario));
    print_schedule(tools, the_case, *file.record.schedule);
    tools.out << "the smallest failing schedule:\n";
    print_schedule(tools, the_case, shrunk.smallest);
    if (shrunk.nearest_passing) {
        tools.out << fmt::format("the nearest passing schedule ({}):\n", shrunk.difference);
        print_schedule(tools, the_case, *shrunk.nearest_passing);
    } else {
        tools.out << "no schedule near the case passes\n";
    }
    tools.out << fmt::format("{} runs{}\n", shrunk.runs,
                             shrunk.whole ? ""
                                          : fmt::format(", the limit of {}: there may be a "
                                                        "smaller one (--runs)",
                                                        maximum_runs));
}

// Plays schedules for shrink(), and keeps the outcome of the last failing one.
class Player {
  public:
    Player(const Loaded& loaded, const FailureTools& tools) : loaded_(loaded), tools_(tools) {}

    Trial play(const Schedule& schedule) {
        // After an interrupt the search has no more runs.
        if (tools_.stop) return Trial::other;
        StageSettings settings = loaded_.settings;
        settings.schedule = schedule;
        CaseOutcome outcome = tools_.run_on_stage(*loaded_.the_case, settings);
        if (tools_.stop) return Trial::other;
        if (outcome.verdict == Verdict::pass) return Trial::passes;
        if (!is_same_failure(loaded_.file, outcome)) return Trial::other;
        if (outcome.record) points_ = outcome.record->points;
        return Trial::fails;
    }

    // Plays for the trace, with every access recorded.
    std::optional<CaseOutcome> play_recorded(const Schedule& schedule, std::uint32_t times) {
        StageSettings settings = loaded_.settings;
        settings.schedule = schedule;
        settings.record_accesses = true;
        for (std::uint32_t i = 0; i < times && !tools_.stop; ++i) {
            CaseOutcome outcome = tools_.run_on_stage(*loaded_.the_case, settings);
            if (tools_.stop) break;
            if (is_same_failure(loaded_.file, outcome)) return outcome;
        }
        return std::nullopt;
    }

    const std::vector<AccessPoint>& points() const { return points_; }

  private:
    const Loaded& loaded_;
    const FailureTools& tools_;
    std::vector<AccessPoint> points_;
};

int save_smallest(const std::string& path, const Loaded& loaded, const Shrunk& shrunk,
                  Player& player, const FailureTools& tools) {
    constexpr std::uint32_t kTimes = 3;
    FailureFile file = loaded.file;
    if (const auto recorded = player.play_recorded(shrunk.smallest, kTimes)) {
        file = make_failure_file(*loaded.the_case, loaded.settings, *recorded, loaded.file.stepper);
    } else {
        if (tools.stop) return say_interrupted(tools, "; no file was written");
        return say(tools, kExitSuite,
                   fmt::format("the smallest schedule did not fail again in {} more runs; no file "
                               "was written",
                               kTimes));
    }
    file.record.schedule = file.settings.schedule = shrunk.smallest;
    file.nearest_passing = shrunk.nearest_passing;
    const std::string written = smallest_path(path);
    const std::string why = write_failure_file(file, written);
    if (!why.empty()) return say(tools, kExitSuite, why);
    tools.out << "written  " << printable(written) << "\n";
    return kExitClean;
}

}  // namespace

int judge_command(const std::string& path, const FailureTools& tools) {
    FailureFile file;
    if (const int status = load_file(path, tools, file); status != kExitClean) return status;
    const JudgedAgain judged = judge_record(file.record);
    if (!judged.error.empty())
        return say(tools, kExitUsage, printable(path) + ": " + printable(judged.error));
    print_head(tools, file);
    if (!judged.driver.empty()) {
        tools.out << "found by the driver during the run, and not judged again:\n";
        print_findings(tools, judged.driver, "");
    }
    if (judged.oracle.empty() && judged.equal)
        tools.out << "judged again: no fault in the records, as in the file\n";
    else if (judged.equal)
        tools.out << "judged again: the same findings as in the file\n";
    else
        tools.out << "judged again: not the findings of the file\n";
    if (judged.equal) {
        print_findings(tools, judged.oracle, "");
    } else {
        print_findings(tools, judged.oracle_in_file, "file: ");
        print_findings(tools, judged.oracle, "now:  ");
        if (judged.oracle.empty()) tools.out << "  now:  nothing\n";
    }
    const bool right = judged.oracle.empty() && judged.driver.empty();
    return done(tools, right ? kExitClean : kExitFailed);
}

int replay_command(const std::string& path, const ReplayOptions& options,
                   const FailureTools& tools) {
    const Loaded loaded = load_for_run(path, options.testee, options.timeout_scale, tools);
    if (loaded.status != kExitClean) return loaded.status;
    print_head(tools, loaded.file);
    if (loaded.settings.schedule) {
        tools.out << fmt::format("schedule of {}:\n",
                                 printable(loaded.settings.schedule->scenario));
        print_schedule(tools, *loaded.the_case, *loaded.settings.schedule);
    }
    tools.out.flush();
    CaseOutcome outcome;
    std::uint32_t run = 0;
    do {
        CaseOutcome next = tools.run_on_stage(*loaded.the_case, loaded.settings);
        if (tools.stop) {
            return say_interrupted(
                tools, run == 0 ? "" : fmt::format("; {} of {} runs passed", run, options.times));
        }
        outcome = std::move(next);
        ++run;
    } while (outcome.verdict == Verdict::pass && run < options.times);
    if (tools.drawing && is_same_failure(loaded.file, outcome)) {
        // For the trace: once more, with every access recorded.
        StageSettings recording = loaded.settings;
        recording.record_accesses = true;
        CaseOutcome again = tools.run_on_stage(*loaded.the_case, recording);
        if (!tools.stop && is_same_failure(loaded.file, again)) outcome = std::move(again);
    }
    print_outcome(tools, loaded.file, outcome, options.verbose);
    if (options.times > 1) tools.out << fmt::format("runs     {}\n", run);
    return done(tools, status_of(outcome.verdict));
}

int shrink_command(const std::string& path, const ShrinkOptions& options,
                   const FailureTools& tools) {
    const Loaded loaded = load_for_run(path, options.testee, options.timeout_scale, tools);
    if (loaded.status != kExitClean) return loaded.status;
    if (!loaded.settings.schedule) {
        const std::string cases = explored_cases(tools, loaded.file);
        return say(tools, kExitUsage,
                   fmt::format("{}: the case {} is played as it is written and has no schedule to "
                               "make smaller; {}",
                               printable(path), printable(loaded.file.case_id),
                               cases.empty() ? "`replay` runs it again"
                                             : "cases that explore its clause: " + cases));
    }
    if (loaded.settings.schedule->drawn)
        return say(tools, kExitUsage,
                   fmt::format("{}: its moves were drawn from seed {}, and did not fail again when "
                               "they were played one by one, so that none can be left out; "
                               "`replay --times N` plays it again",
                               printable(path), loaded.settings.schedule->seed));
    print_head(tools, loaded.file);
    tools.out.flush();
    Player player(loaded, tools);
    ShrinkLimits limits;
    limits.runs = options.maximum_runs;
    const Shrunk shrunk = shrink(
        *loaded.settings.schedule, [&](const Schedule& schedule) { return player.play(schedule); },
        player.points(), limits);
    if (tools.stop) {
        if (shrunk.fails) {
            tools.out << "the smallest found so far that fails:\n";
            print_schedule(tools, *loaded.the_case, shrunk.smallest);
        }
        tools.out.flush();
        return say_interrupted(tools, "; no file was written");
    }
    if (!shrunk.fails) {
        tools.out << fmt::format("the case does not fail in this way any more ({} runs)\n",
                                 shrunk.runs);
        return done(tools, kExitFailed);
    }
    print_shrunk(tools, loaded, shrunk, options.maximum_runs);
    const int status = save_smallest(path, loaded, shrunk, player, tools);
    return done(tools, status);
}

}  // namespace kmes::conformance
