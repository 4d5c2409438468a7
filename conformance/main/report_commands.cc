// SPDX-License-Identifier: MIT
//
// See report_commands.h.
#include "conformance/main/report_commands.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/main/command_line.h"
#include "conformance/main/options.h"
#include "conformance/main/report_files.h"
#include "conformance/main/report_order.h"
#include "conformance/report/input_file.h"
#include "conformance/report/json_read.h"
#include "conformance/report/result.h"
#include "conformance/report/statement.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

// All shards of a run must agree in these. Returns the first difference, or an empty string.
std::string difference(const RunReport& one, const RunReport& other) {
    const RunOptions& a = one.options;
    const RunOptions& b = other.options;
    const std::pair<std::string_view, bool> checks[] = {
        {"the suite", one.suite == other.suite && one.suite_cases == other.suite_cases},
        {"the consumer", one.consumer == other.consumer},
        {"the program", one.testee == other.testee},
        {"--seed", one.seed == other.seed},
        {"--cpus", one.cpus == other.cpus},
        {"--capacity", one.capacity_bytes == other.capacity_bytes},
        {"another option", a == b},
        {"the number of shards", one.shard->total == other.shard->total},
        {"the cases of all shards", one.shard->cases == other.shard->cases}};
    for (const auto& [what, is_same] : checks) {
        if (!is_same) return std::string(what);
    }
    return "";
}

// Several machines are listed by name; identical ones once.
void add_name(std::string& names, const std::string& name) {
    if (name.empty() || ("; " + names + "; ").find("; " + name + "; ") != std::string::npos) return;
    names += (names.empty() ? "" : "; ") + name;
}

void add_machine(Machine& all, const Machine& one) {
    add_name(all.kernel, one.kernel);
    add_name(all.processor, one.processor);
    all.processors = std::max(all.processors, one.processors);
}

// Returns why the file of a shard cannot be joined to the others; empty: it can.
std::string check_shard(const RunReport& shard, const std::string& name, const RunReport& first,
                        const std::string& first_name,
                        std::map<std::uint32_t, std::string>& indexes) {
    if (!shard.shard)
        return fmt::format(
            "{}: this is no report of a shard; expected one of a run with "
            "TEST_TOTAL_SHARDS",
            printable(name));
    if (std::string what = difference(first, shard); !what.empty())
        return fmt::format("{} and {} differ in {}; expected shards of one run",
                           printable(first_name), printable(name), what);
    const auto [other, is_new] = indexes.try_emplace(shard.shard->index, name);
    if (!is_new)
        return fmt::format("{} and {} are both shard {}", printable(other->second), printable(name),
                           shard.shard->index);
    return "";
}

// Of several verdicts on one case, the one with the highest rank is that of the case.
int rank_of(Verdict verdict) {
    switch (verdict) {
        case Verdict::pass:
            return 0;
        case Verdict::unsupported:
            return 1;
        case Verdict::inconclusive:
            return 2;
        case Verdict::suite_error:
            return 3;
        case Verdict::fail:
            return 4;
    }
    return 4;
}

// An unknown failure ranks above a known one, which does not fail the run.
bool is_below(const CaseResult* a, const CaseResult* b) {
    return std::pair(rank_of(a->verdict), !a->is_known) <
           std::pair(rank_of(b->verdict), !b->is_known);
}

// Returns the part whose verdict is that of the case: the first of the highest rank.
const CaseResult& decisive_part(const std::vector<const CaseResult*>& parts) {
    return **std::ranges::max_element(parts, is_below);
}

// The result of a case of which several shards played a part.
CaseResult joined(const std::vector<const CaseResult*>& parts) {
    CaseResult all = decisive_part(parts);
    if (parts.size() == 1) return all;
    Explored explored{.whole = true};
    double seconds = 0;
    for (const CaseResult* part : parts) {
        seconds = std::max(seconds, part->seconds);
        if (!part->explored) continue;
        explored.schedules += part->explored->schedules;
        explored.seconds = std::max(explored.seconds, part->explored->seconds);
        explored.whole = explored.whole && part->explored->whole;
    }
    all.seconds = seconds;
    if (all.explored) all.explored = explored;
    if (all.verdict != Verdict::pass) return all;
    if (all.explored) {
        all.message = fmt::format("{} schedules in {} shards", explored.schedules, parts.size());
    } else {
        all.message.clear();
        for (const CaseResult* part : parts)
            all.message += (all.message.empty() ? "" : "; ") + part->message;
    }
    return all;
}

using ShardsByIndex = std::map<std::uint32_t, const RunReport*>;
using PartsOfCases = std::map<std::string_view, std::vector<const CaseResult*>>;

// Adds the differences that hold for the whole run. A shard that played a part of a case speaks for
// the case only if its part is the decisive one. Each shard names the lines without a case.
void add_differences(const ShardsByIndex& by_index, const PartsOfCases& results, RunReport& all) {
    for (const auto& [index, shard] : by_index) {
        std::vector<ListDifference> differences = shard->differences;
        differences.insert(differences.end(), shard->part_differences.begin(),
                           shard->part_differences.end());
        for (const ListDifference& difference : differences) {
            const auto parts = results.find(difference.case_id);
            const auto is_of_case = [&](const CaseResult& result) {
                return parts != results.end() && &decisive_part(parts->second) == &result;
            };
            const bool is_decisive =
                difference.case_id.empty() || std::ranges::any_of(shard->results, is_of_case);
            if (is_decisive &&
                std::ranges::find(all.differences, difference) == all.differences.end())
                all.differences.push_back(difference);
        }
    }
}

void add_results(const std::vector<RunReport>& shards, Merged& merged) {
    PartsOfCases results;
    std::set<std::string_view> not_run;
    ShardsByIndex by_index;
    for (const RunReport& shard : shards) by_index[shard.shard->index] = &shard;
    for (const auto& [index, shard] : by_index) {
        for (const CaseResult& result : shard->results) results[result.id].push_back(&result);
        not_run.insert(shard->not_run.begin(), shard->not_run.end());
    }
    for (const std::string& id : shards.front().shard->cases) {
        const auto found = results.find(id);
        if (found == results.end()) {
            merged.report.not_run.push_back(id);
            continue;
        }
        CaseResult result = joined(found->second);
        // A failure stands, whatever the other parts of the case would have shown.
        if (not_run.contains(id) && result.verdict != Verdict::fail)
            merged.report.not_run.push_back(id);
        else
            merged.report.results.push_back(std::move(result));
    }
    add_differences(by_index, results, merged.report);
}

}  // namespace

Merged merge_shards(const std::vector<RunReport>& shards, const std::vector<std::string>& names) {
    Merged merged;
    std::map<std::uint32_t, std::string> indexes;
    double end = 0;
    bool has_run = false;
    for (std::size_t i = 0; i < shards.size(); ++i) {
        const RunReport& shard = shards[i];
        merged.error = check_shard(shard, names[i], shards.front(), names.front(), indexes);
        if (!merged.error.empty()) return merged;
        RunReport& all = merged.report;
        if (i == 0) {
            all = shard;
            all.results.clear();
            all.not_run.clear();
            all.differences.clear();
            all.part_differences.clear();
            all.machine = {};
        }
        // The text of one shard says nothing about a run in which others had cases.
        if (shard.preflight.empty()) has_run = true;
        all.shard.reset();
        all.began = std::min(all.began, shard.began);
        end = std::max(end, static_cast<double>(shard.began) + shard.seconds);
        all.interrupted = all.interrupted || shard.interrupted;
        add_machine(all.machine, shard.machine);
    }
    if (has_run) {
        merged.report.preflight.clear();
        merged.report.preflight_status = 0;
    }
    merged.report.seconds = end - static_cast<double>(merged.report.began);
    add_results(shards, merged);
    for (std::uint32_t i = 0; i < shards.front().shard->total; ++i) {
        if (!indexes.contains(i))
            merged.missing.push_back(
                fmt::format("shard {} of {} is missing", i, shards.front().shard->total));
    }
    const std::size_t cases = merged.report.not_run.size();
    if (cases > 0)
        merged.missing.push_back(fmt::format("{} case{} did not run, the first is {}", cases,
                                             cases == 1 ? "" : "s",
                                             printable(merged.report.not_run.front())));
    return merged;
}

namespace {

int run_merge(const std::vector<std::string>& arguments, const Surroundings& around) {
    CLI::App app("Joins the JSON reports of the shards of a run into one verdict.",
                 "kmes-conformance merge");
    std::vector<std::string> files;
    std::vector<std::string> forms;
    app.add_option("FILE", files, "the JSON report of each shard")->take_all();
    app.add_option("--report", forms, kReportHelp)
        ->type_name(kReportTypes)
        ->take_all()
        ->allow_extra_args(false);
    app.footer(
        "Exit status: that of a run of all cases; 3 if a shard or a case is missing; 2 bad "
        "usage,\nor files that do not belong together.");
    if (const auto status = parse_words(app, arguments, around)) return *status;
    if (files.empty())
        return say_usage("merge", "no file is named; expected merge FILE...", around);
    ReportChoice choice;
    if (const std::string wrong = add_reports(forms, choice); !wrong.empty())
        return say_usage("merge", wrong, around);
    if (const std::string twice = find_repeated_file(named_files(choice.more)); !twice.empty())
        return say(around, kExitUsage, twice);
    std::vector<RunReport> shards;
    for (const std::string& name : files) {
        const InputFile file = read_input_file(name, kMaximumReportFileBytes);
        if (!file.error.empty()) return say(around, kExitUsage, file.error);
        ReadReport read = report_from_json(file.text);
        if (!read.error.empty())
            return say(around, kExitUsage, printable(name) + ": " + read.error);
        shards.push_back(std::move(read.report));
    }
    Merged merged = merge_shards(shards, files);
    if (!merged.error.empty()) return say(around, kExitUsage, merged.error);
    // A shard knows only its own failures.
    order_failures(around.cases, merged.report);
    ReportFiles outputs;
    if (const int status = outputs.open(choice.more, &around.stop); status != 0)
        return say(around, status, outputs.error());
    const auto text_of = [&](ReportFormat format) { return report_text(merged.report, format); };
    around.out << text_of(choice.format.value_or(ReportFormat::console)) << std::flush;
    for (const std::string& line : merged.missing) say(around, kExitSuite, line);
    if (!outputs.commit(text_of)) return say(around, kExitSuite, outputs.error());
    const int status = exit_status(merged.report);
    for (const ListDifference& each : merged.report.differences)
        say(around, status, printable(each.message));
    return finish_output(around, merged.missing.empty() ? status : kExitSuite);
}

// The first line in which two texts differ, from 1, and its content in each.
struct LineDifference {
    std::size_t number = 0;
    std::string one;
    std::string other;
};

LineDifference first_difference(std::string_view one, std::string_view other) {
    for (std::size_t number = 1;; ++number) {
        const std::string_view a = one.substr(0, one.find('\n'));
        const std::string_view b = other.substr(0, other.find('\n'));
        if (a != b || a.size() == one.size() || b.size() == other.size())
            return {number, printable(a.substr(0, 200)), printable(b.substr(0, 200))};
        one.remove_prefix(a.size() + 1);
        other.remove_prefix(b.size() + 1);
    }
}

int run_verify(const std::vector<std::string>& arguments, const Surroundings& around) {
    CLI::App app("Checks a statement against the JSON report that it is about.",
                 "kmes-conformance verify");
    std::string statement;
    std::string json;
    app.add_option("STATEMENT", statement, "the statement (--report statement)");
    app.add_option("FILE", json, "the JSON report of the same run");
    app.footer(
        "Exit status: 0 each line of the statement follows from the report; 1 one does not; "
        "2 bad\nusage, or a file that is none of these.");
    if (const auto status = parse_words(app, arguments, around)) return *status;
    if (statement.empty() || json.empty())
        return say_usage("verify", "expected verify STATEMENT FILE", around);
    constexpr std::size_t kStatementBytes = std::size_t{64} << 20;
    const InputFile stated = read_input_file(statement, kStatementBytes);
    if (!stated.error.empty()) return say(around, kExitUsage, stated.error);
    if (!stated.text.starts_with(std::string(kStatementTitle) + "\n"))
        return say(around, kExitUsage,
                   fmt::format(
                       "{}: expected a first line \"{}\"{}", printable(statement), kStatementTitle,
                       stated.text.starts_with("{") ? "; the statement comes before the JSON report"
                                                    : ""));
    const InputFile file = read_input_file(json, kMaximumReportFileBytes);
    if (!file.error.empty()) return say(around, kExitUsage, file.error);
    const ReadReport read = report_from_json(file.text);
    if (!read.error.empty()) return say(around, kExitUsage, printable(json) + ": " + read.error);
    const std::string expected = to_statement(read.report, file.text);
    if (stated.text == expected) {
        around.out << fmt::format("{} is the statement of {}\n", printable(statement),
                                  printable(json))
                   << std::flush;
        return finish_output(around, kExitClean);
    }
    const LineDifference line = first_difference(stated.text, expected);
    return say(around, kExitFailed,
               fmt::format("{}:{}: the statement has \"{}\"; {} gives \"{}\"", printable(statement),
                           line.number, line.one, printable(json), line.other));
}

}  // namespace

std::vector<Command> report_commands() {
    return {{"merge", run_merge}, {"verify", run_verify}};
}

}  // namespace kmes::conformance
