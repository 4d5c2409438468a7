// SPDX-License-Identifier: MIT
//
// The report for a person.
#include "conformance/report/console.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "conformance/model/published_clause.h"
#include "conformance/report/result.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

// How many lines of details a problem shows without -v.
constexpr std::size_t kShortDetails = 24;
constexpr std::size_t kAllDetails = 100000;
constexpr std::size_t kDetailBytes = 2048;  // of a line of the short ones
// How many cases that did not run are listed: the first ones tell where the run ended.
constexpr std::size_t kNotRunShown = 5;
constexpr std::size_t kRemarksShown = 5;
// Lines of ids of cases with the same message.
constexpr std::size_t kIdsWidth = 100;
constexpr const char* kIdsIndent = "            ";

std::string_view colour_of(Verdict verdict) {
    switch (verdict) {
        case Verdict::pass:
            return "\x1b[32m";
        case Verdict::fail:
        case Verdict::suite_error:
            return "\x1b[31m";
        case Verdict::inconclusive:
            return "\x1b[33m";
        case Verdict::unsupported:
            return "\x1b[36m";
    }
    return "";
}

// "suite error": the name for a person.
std::string_view spoken_name(Verdict verdict) {
    return verdict == Verdict::suite_error ? "suite error" : verdict_name(verdict);
}

// What a passed case left out or had nothing of. Empty: it passed as a whole.
std::string remark_of(const CaseResult& result) {
    if (!result.explored)
        return result.verdict == Verdict::pass ? printable(result.message) : std::string();
    if (result.explored->schedules != 0 || !result.explored->whole) return {};
    return "nothing to explore: " + printable(result.message);
}

// "  1840 schedules in 12.4 s": how much was explored, or what was left out.
std::string explored_text(const CaseResult& result) {
    const std::string remark = remark_of(result);
    if (!remark.empty()) return "  " + remark;
    if (!result.explored) return {};
    const Explored& explored = *result.explored;
    const std::string saved =
        explored.saved == 0 ? "" : fmt::format(", {} plays saved by equivalence", explored.saved);
    return fmt::format("  {} schedule{} in {:.1f} s{}{}", explored.schedules,
                       explored.schedules == 1 ? "" : "s", explored.seconds,
                       explored.whole ? ", every single move" : "", saved);
}

// The maximum line length for one of several failures of the same clause.
constexpr std::size_t kLineWidth = 200;

// Shortens a text that is too long for its line; dots mark the end.
std::string shortened(std::string text, std::size_t width) {
    constexpr std::string_view kDots = "...";
    if (text.size() <= width) return text;
    text.resize(cut(text, width - kDots.size()).size());
    return text.append(kDots);
}

// Returns the failures in the order for the reader.
std::vector<const CaseResult*> failures_of(const RunReport& report) {
    std::vector<const CaseResult*> failures;
    for (const std::size_t index : report.reading_order)
        failures.push_back(&report.results.at(index));
    if (!failures.empty()) return failures;
    for (const CaseResult& result : report.results) {
        if (result.verdict == Verdict::fail) failures.push_back(&result);
    }
    return failures;
}

// Whether a line of the drawing begins with the number of this step, after its colour and its mark.
bool shows_step(std::string_view drawing, std::uint64_t number) {
    const std::string digits = std::to_string(number) + " ";
    while (!drawing.empty()) {
        const std::size_t end = drawing.find('\n');
        std::string_view line = drawing.substr(0, end);
        drawing.remove_prefix(end == std::string_view::npos ? drawing.size() : end + 1);
        if (line.starts_with('\x1b')) line = line.substr(std::min(line.find('m') + 1, line.size()));
        line.remove_prefix(std::min(line.find_first_not_of(" >"), line.size()));
        if (line.starts_with(digits)) return true;
    }
    return false;
}

// The options of a run that `smoke` has too, each with a space after it.
std::string smoke_options(const RunOptions& options) {
    std::string text;
    if (!options.layout.empty()) text += fmt::format("--layout {} ", printable(options.layout));
    if (options.timeout_scale != 1.0)
        text += fmt::format("--timeout-scale {} ", options.timeout_scale);
    return text;
}

std::string count_text(std::uint64_t count, std::string_view name) {
    return count == 0 ? std::string() : fmt::format(", {} {}", count, name);
}

}  // namespace

std::string ConsoleReport::paint(std::string_view text, Verdict verdict) const {
    if (!options_.colour) return std::string(text);
    return fmt::format("{}{}\x1b[0m", colour_of(verdict), text);
}

void ConsoleReport::begin(const RunReport& report, std::size_t case_count) {
    case_count_ = case_count;
    if (options_.quiet) return;
    out_ << fmt::format("{}: {}\n", suite_title(report.suite),
                        printable(shell_command(report.testee)));
    out_ << fmt::format("{} case{}, {} CPU{}, capacity {} bytes, seed {}\n", case_count,
                        case_count == 1 ? "" : "s", report.cpus, report.cpus == 1 ? "" : "s",
                        report.capacity_bytes, report.seed);
    if (!report.stepper.empty()) out_ << "stepper: " << printable(report.stepper) << "\n";
    if (report.preflight.empty() && options_.verbose) print_head();
    out_.flush();
}

void ConsoleReport::print_head() {
    out_ << fmt::format("\n{:<{}}  {:<7}  {:<12}  {:>7}\n", "case",
                        std::max<std::size_t>(options_.id_width, 4), "level", "verdict", "seconds");
}

void ConsoleReport::print_row(const CaseResult& result) {
    // Padded before it is coloured, because colour codes have no width.
    const std::string verdict = fmt::format("{:<12}", spoken_name(result.verdict));
    out_ << fmt::format("{:<{}}  {:<7}  {}  {:>7.2f}{}\n", printable(result.id),
                        std::max<std::size_t>(options_.id_width, 4), level_name(result.level),
                        paint(verdict, result.verdict), result.seconds, explored_text(result));
}

void ConsoleReport::add(const CaseResult& result) {
    ++finished_;
    if (result.verdict == Verdict::fail) ++failed_;
    if (options_.verbose) {
        print_row(result);
        if (!result.message.empty()) print_text("    " + printable(result.message));
        print_details(result.details, kAllDetails);
    } else {
        print_sign_of_life();
    }
    // Even without a word: a stream whose reader has gone shows it, and the run can end.
    out_.flush();
}

// A log without a terminal shows that a long run goes on. Short runs print none.
void ConsoleReport::print_sign_of_life() {
    if (options_.quiet || options_.sign_of_life.count() == 0) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_sign_ < options_.sign_of_life) return;
    last_sign_ = now;
    out_ << fmt::format("{} of {} cases have run, {} failed\n", finished_, case_count_, failed_);
}

void ConsoleReport::end(const RunReport& report) {
    layout_ = report.options.layout;
    for (const CaseResult& result : report.results)
        options_.id_width = std::max(options_.id_width, result.id.size());
    const std::vector<const CaseResult*> failures = failures_of(report);
    for (const Verdict verdict :
         {Verdict::suite_error, Verdict::fail, Verdict::inconclusive, Verdict::unsupported}) {
        if (verdict == Verdict::fail) {
            print_failures(failures);
            continue;
        }
        for (const CaseResult& result : report.results) {
            if (result.verdict == verdict) print_problem(result);
        }
    }
    if (report.preflight.empty())
        print_not_run(report);
    else
        print_preflight(report);
    if (!options_.quiet && !options_.verbose) print_remarks(report);
    print_clauses(failures);
    print_sums(report);
    out_.flush();
}

// The clearest failure of each clause comes before the second ones of any.
void ConsoleReport::print_failures(const std::vector<const CaseResult*>& failures) {
    std::vector<const CaseResult*> in_full;
    for (const CaseResult* result : failures) {
        const auto is_of_it = [&](const CaseResult* each) {
            return each->clause == result->clause;
        };
        if (options_.verbose || std::ranges::none_of(in_full, is_of_it)) in_full.push_back(result);
    }
    for (const CaseResult* result : in_full) {
        print_problem(*result);
        if (options_.verbose) continue;
        std::vector<const CaseResult*> others;
        std::ranges::copy_if(failures, std::back_inserter(others), [&](const CaseResult* each) {
            return each != result && each->clause == result->clause;
        });
        if (others.empty()) continue;
        out_ << fmt::format("    {} more case{} of {} (-v prints them in full):\n", others.size(),
                            others.size() == 1 ? "" : "s", printable(result->clause));
        print_others(others);
    }
}

// One line for each case. Cases with the same message share it: it comes once, and then their ids.
void ConsoleReport::print_others(const std::vector<const CaseResult*>& others) {
    std::map<std::string, std::vector<const CaseResult*>> cases_of;
    for (const CaseResult* each : others) cases_of[each->message].push_back(each);
    for (const CaseResult* each : others) {
        const std::vector<const CaseResult*>& same = cases_of[each->message];
        if (same.size() == 1) print_in_a_line(*each, printable(each->message));
        if (same.size() == 1 || each != same.front()) continue;
        out_ << "        " << shortened(printable(each->message), kLineWidth - 8) << "\n";
        std::string line;
        for (const CaseResult* one : same) {
            const std::string id = printable(one->id) + (one->is_known ? " (known)" : "") +
                                   (one == same.back() ? "" : ",");
            if (!line.empty() && line.size() + 1 + id.size() > kIdsWidth)
                out_ << std::exchange(line, "") << "\n";
            line += (line.empty() ? kIdsIndent : " ") + id;
        }
        out_ << line << "\n";
    }
}

void ConsoleReport::print_in_a_line(const CaseResult& result, const std::string& text) {
    out_ << shortened(fmt::format("        {}  {}{}", printable(result.id),
                                  result.is_known ? "(known) " : "", text),
                      kLineWidth)
         << "\n";
}

void ConsoleReport::print_preflight(const RunReport& report) {
    const std::string test = printable(shell_command(report.testee));
    const std::string given = options_.given.empty() ? "" : printable(options_.given) + " ";
    out_ << "\nthe adapter cannot work, and no case was run:\n";
    print_text(printable(report.preflight, true));
    print_command(fmt::format("    check the adapter alone: {} smoke {}-- {}", options_.command,
                              smoke_options(report.options), test));
    print_command(fmt::format("    run the cases nevertheless: {} {}--no-preflight -- {}",
                              options_.command, given, test));
}

void ConsoleReport::print_place(const CaseResult& result) {
    const TraceRow* row = named_row(result.trace);
    if (row == nullptr) return;
    const std::string step = shows_step(result.drawing, row->number)
                                 ? fmt::format("; step {} below", row->number)
                                 : std::string();
    print_text(fmt::format("    where: {}{}", printable(row->place), step));
    // The place is an instruction if the program has no table of its lines.
    if (!row->place.starts_with('`') || has_said_how_to_see_lines_) return;
    has_said_how_to_see_lines_ = true;
    out_ << "        (compile the consumer with -g to see lines of its code)\n";
}

void ConsoleReport::print_problem(const CaseResult& result) {
    out_ << fmt::format("\n{} {}", paint(spoken_name(result.verdict), result.verdict),
                        printable(result.id));
    if (!result.clause.empty()) out_ << fmt::format(" (clause {})", printable(result.clause));
    out_ << (result.is_known ? ", a known failure\n" : "\n");
    const std::string published = published_place(result.clause, layout_);
    if (!published.empty())
        print_text(fmt::format("    published, form {}: {}", printable(layout_), published));
    print_text("    " + printable(result.message));
    if (!result.last_words.empty())
        print_text("    its standard error: " + printable(result.last_words));
    print_place(result);
    if (!result.what_is_done.empty())
        print_text("    what is done: " + printable(result.what_is_done));
    if (!result.what_is_right.empty())
        print_text("    what is right: " + printable(result.what_is_right));
    // The trace is made for this terminal, and safe to print.
    if (!result.drawing.empty()) out_ << "\n" << result.drawing << "\n";
    // With -v the table has them already.
    if (!options_.verbose && result.verdict != Verdict::unsupported) {
        print_details(result.details, kShortDetails);
    }
    // If this machine does not permit a case, another try will not help.
    const bool again = result.verdict != Verdict::unsupported;
    if (!result.saved.empty()) out_ << "    kept in: " << printable(result.saved) << "\n";
    if (again && !result.replay.empty())
        print_command("    run again: " + printable(result.replay));
}

namespace {

// Returns the position of the last " --" up to `most` that is outside of the quotes of a shell, or
// npos.
std::size_t last_option(std::string_view line, std::size_t most) {
    std::size_t found = std::string::npos;
    char quote = '\0';
    bool has_escapes = true;  // not between single quotes, except in $'...'
    for (std::size_t i = 0; i < line.size() && i <= most; ++i) {
        if (line[i] == '\\' && has_escapes) {
            ++i;
        } else if (quote != '\0') {
            if (line[i] != quote) continue;
            quote = '\0';
            has_escapes = true;
        } else if (line[i] == '\'' || line[i] == '"') {
            quote = line[i];
            has_escapes = quote == '"' || (i > 0 && line[i - 1] == '$');
        } else if (line.substr(i).starts_with(" --")) {
            found = i;
        }
    }
    return found;
}

}  // namespace

// A command that can be copied into a shell over several lines.
void ConsoleReport::print_command(const std::string& text) {
    constexpr std::string_view kNext = " \\\n        ";
    std::string line = text;
    while (line.size() > kLineWidth) {
        const std::size_t cut = last_option(line, kLineWidth - kNext.size());
        if (cut == std::string::npos || line.find_first_not_of(' ') >= cut) break;
        out_ << line.substr(0, cut) << kNext;
        line.erase(0, cut + 1);
    }
    out_ << line << "\n";
}

// No line of the report is longer than this, so that a log remains readable.
void ConsoleReport::print_text(const std::string& text) {
    constexpr std::size_t kGoesOn = 8;
    out_ << wrapped(text, kLineWidth, kGoesOn);
}

void ConsoleReport::print_details(const std::string& details, std::size_t maximum_lines) {
    const std::string text = printable(details, true);
    std::size_t lines = 0;
    for (std::size_t begin = 0; begin < text.size(); ++lines) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::string_view line = std::string_view(text).substr(begin, end - begin);
        const bool is_long = maximum_lines != kAllDetails && line.size() > kDetailBytes;
        if (lines < maximum_lines)
            print_text(fmt::format("    | {}{}", is_long ? cut(line, kDetailBytes) : line,
                                   is_long ? " ... (-v prints the whole line)" : ""));
        begin = end + 1;
    }
    if (lines > maximum_lines) {
        out_ << fmt::format("    | ({} more lines: run it again with -v)\n", lines - maximum_lines);
    }
}

void ConsoleReport::print_not_run(const RunReport& report) {
    if (report.not_run.empty()) return;
    // Nothing that an interrupted run has found is lost. With -v the rows stand above.
    if (report.interrupted && !options_.verbose && !options_.quiet && !report.results.empty()) {
        print_head();
        for (const CaseResult& result : report.results) print_row(result);
    }
    out_ << fmt::format("\n{} {} not run{}:\n", report.not_run.size(),
                        report.not_run.size() == 1 ? "case was" : "cases were",
                        report.interrupted   ? " (interrupted)"
                        : options_.fail_fast ? " (--fail-fast)"
                                             : "");
    const std::size_t shown =
        options_.verbose ? report.not_run.size() : std::min(report.not_run.size(), kNotRunShown);
    for (std::size_t i = 0; i < shown; ++i) out_ << "    " << printable(report.not_run[i]) << "\n";
    if (shown < report.not_run.size())
        out_ << fmt::format("    ({} more: -v names them)\n", report.not_run.size() - shown);
}

// What the table of -v says of passed cases: some passed in part, and some explored.
void ConsoleReport::print_remarks(const RunReport& report) {
    std::uint64_t schedules = 0;
    double seconds = 0;
    std::vector<const CaseResult*> remarked;
    for (const CaseResult& result : report.results) {
        if (!remark_of(result).empty()) remarked.push_back(&result);
        if (!result.explored) continue;
        schedules += result.explored->schedules;
        seconds += result.explored->seconds;
    }
    if (!remarked.empty()) out_ << "\npassed, with a remark:\n";
    for (std::size_t i = 0; i < std::min(remarked.size(), kRemarksShown); ++i)
        print_in_a_line(*remarked[i], remark_of(*remarked[i]));
    if (remarked.size() > kRemarksShown)
        out_ << fmt::format("        ({} more: -v shows them)\n", remarked.size() - kRemarksShown);
    if (schedules != 0)
        out_ << fmt::format("\nexplored: {} schedule{} in {:.1f} s\n", schedules,
                            schedules == 1 ? "" : "s", seconds);
}

// The end of the output is read first: what is wrong, in a few lines, and where to look.
void ConsoleReport::print_clauses(const std::vector<const CaseResult*>& failures) {
    if (failures.size() < 2) return;
    struct Clause {
        const CaseResult* first = nullptr;
        std::size_t cases = 0;
    };
    std::vector<Clause> clauses;
    for (const CaseResult* result : failures) {
        const auto same = [&](const Clause& each) { return each.first->clause == result->clause; };
        auto clause = std::find_if(clauses.begin(), clauses.end(), same);
        if (clause == clauses.end()) clause = clauses.insert(clause, Clause{result, 0});
        ++clause->cases;
    }
    out_ << "\nbroken, and the case to read first (above, in this order):\n";
    for (const Clause& clause : clauses) {
        const TraceRow* row = named_row(clause.first->trace);
        out_ << fmt::format("    {:<10} {:>3} case{}  {}{}\n", printable(clause.first->clause),
                            clause.cases, clause.cases == 1 ? " " : "s",
                            printable(clause.first->id),
                            row == nullptr ? "" : "; " + printable(row->place));
    }
}

void ConsoleReport::print_sums(const RunReport& report) {
    const Summary sums = summarise(report.results);
    const std::size_t count = report.results.size();
    const std::string pass = fmt::format("{} pass", sums.pass);
    const std::string fail = fmt::format("{} fail", sums.fail);
    out_ << fmt::format("\n{} case{}: {}, {}{}{}{}{}{}; {:.1f} s\n", count, count == 1 ? "" : "s",
                        sums.pass == 0 ? pass : paint(pass, Verdict::pass),
                        sums.fail == 0 ? fail : paint(fail, Verdict::fail),
                        sums.known == 0 ? "" : fmt::format(" ({} known)", sums.known),
                        count_text(sums.inconclusive, "inconclusive"),
                        count_text(sums.unsupported, "unsupported"),
                        count_text(sums.suite_error, "suite error"),
                        count_text(report.not_run.size(), "not run"), report.seconds);
}

void ProgressLine::show(std::size_t number, std::size_t count, std::size_t failed,
                        std::string_view id) {
    if (out_ == nullptr) return;
    // Go back to the first column, print the line, and erase the rest of the previous one.
    *out_ << fmt::format("\r[{}/{}{}] {}\x1b[K", number, count, count_text(failed, "failed"),
                         printable(id))
          << std::flush;
    shown_ = true;
}

void ProgressLine::clear() {
    if (!shown_) return;
    *out_ << "\r\x1b[K" << std::flush;
    shown_ = false;
}

}  // namespace kmes::conformance
