// SPDX-License-Identifier: MIT
//
// kmes-conformance from its arguments to its exit status.
#include "conformance/main/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "conformance/main/case_run.h"
#include "conformance/main/command_line.h"
#include "conformance/main/nearest.h"
#include "conformance/main/options.h"
#include "conformance/main/selection.h"
#include "conformance/main/shard.h"
#include "conformance/model/case_id.h"
#include "conformance/model/layout.h"
#include "conformance/model/published_clause.h"
#include "conformance/report/result.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

int list_cases(const Options& options, const Surroundings& around) {
    // A list without --level contains all levels.
    const Selection selection = select_cases(around.cases, {options.filters, options.without},
                                             options.level.value_or(Level::robust), nullptr);
    if (!selection.error.empty()) return say(around, kExitUsage, selection.error);
    const std::size_t width = longest_id(selection.cases);
    for (const Case* each : selection.cases) {
        // A default run includes the explored cases.
        const bool needs_option =
            each->demand != Demand::always && each->demand != Demand::explored;
        const std::string option = needs_option ? fmt::format(" ({})", asks_for(each->demand)) : "";
        around.out << fmt::format("{:<{}}  {:<7}  {}{}\n", each->id, width, level_name(each->level),
                                  each->title, option);
    }
    return finish_output(around, kExitClean);
}

// "E3/a, E3/b, and 3 more (--list --filter 'E3/*')". `pattern` matches the ids; empty: none does.
std::string text_of_ids(const std::vector<std::string_view>& ids, const std::string& pattern) {
    constexpr std::size_t kNamed = 6;
    const std::size_t named = std::min(ids.size(), kNamed);
    std::string line = fmt::format("{}", fmt::join(ids.begin(), ids.begin() + named, ", "));
    if (ids.size() > named && !pattern.empty())
        line += fmt::format(", and {} more (--list --filter '{}')", ids.size() - named, pattern);
    else if (ids.size() > named)
        line += fmt::format(", and {} more (the command clauses prints them)", ids.size() - named);
    return line;
}

// "E3 is a clause, and no case; its cases: ..." Empty if no case is of this clause.
std::string text_of_clause(const std::string& clause, const Surroundings& around) {
    std::vector<std::string_view> ids;
    if (clause.empty()) return "";
    for (const Case& each : around.cases) {
        if (is_of_clause(each.clause(), clause) || is_of_clause(clause_of_id(each.id), clause))
            ids.push_back(each.id);
    }
    if (ids.empty()) return "";
    return fmt::format("{} is a clause, and no case; its cases: {}", clause,
                       text_of_ids(ids, pattern_of_clause(around.cases, clause)));
}

// "E3/* is a pattern, and no case; its cases: ..." Empty if it is no pattern, or matches no case.
std::string text_of_pattern(const std::string& pattern, const Surroundings& around) {
    if (pattern.find_first_of("*?[") == pattern.npos) return "";
    const Selection selection = select_cases(around.cases, {{pattern}, {}}, Level::robust, nullptr);
    if (!selection.error.empty()) return "";
    std::vector<std::string_view> ids;
    for (const Case* each : selection.cases) ids.push_back(each->id);
    return fmt::format("{} is a pattern, and no case; its cases: {}", printable(pattern),
                       text_of_ids(ids, printable(pattern)));
}

int say_no_such_case(const std::string& id, const Surroundings& around) {
    if (const std::string line = text_of_clause(id, around); !line.empty())
        return say(around, kExitUsage, line);
    if (const std::string line = text_of_pattern(id, around); !line.empty())
        return say(around, kExitUsage, line);
    if (const std::string why = around.why_no_case ? around.why_no_case(id) : ""; !why.empty())
        return say(around, kExitUsage, why);
    std::string line = "there is no case \"" + printable(id) + "\"";
    const auto nearest = nearest_ids(around.cases, id);
    for (std::size_t i = 0; i < nearest.size(); ++i) {
        line += (i == 0 ? "; nearest: " : ", ") + std::string(nearest[i]);
    }
    if (nearest.empty()) line += "; --list prints them all";
    return say(around, kExitUsage, line);
}

int explain_case(const Options& options, const Surroundings& around) {
    const Case* found = find_case(around.cases, options.explain);
    if (found == nullptr) return say_no_such_case(options.explain, around);
    std::string published = published_place(found->clause(), other_layout());
    if (!published.empty()) published = "published:   " + published + "\n";
    std::string former(found->former_id);
    if (!former.empty()) former = "former id:   " + former + "\n";
    around.out << fmt::format(
        "{}\n{}\nlevel:       {}\nclause:      {}\n{}title:       {}\n\nwhat is done: {}\n\nwhat "
        "is "
        "right: {}\n",
        found->id, former, level_name(found->level), found->clause(), published, found->title,
        found->description, found->expectation);
    return finish_output(around, kExitClean);
}

// --debug: runs the one case, whatever its level and its demand.
int debug_case(Options options, const Surroundings& around) {
    const Case* found = find_case(around.cases, options.debug);
    if (found == nullptr) return say_no_such_case(options.debug, around);
    if (found->demand == Demand::soak && options.soak_seconds == 0) {
        return say(around, kExitUsage,
                   fmt::format("--debug {} also needs --soak SECONDS", found->id));
    }
    if (found->demand == Demand::stream && options.stream.empty()) {
        return say(around, kExitUsage,
                   fmt::format("--debug {} also needs --stream FILE", found->id));
    }
    if (found->demand == Demand::holes && layout().attach != AttachArguments::one_cpu_or_count) {
        return say(around, kExitUsage, fmt::format("--debug {} also needs --layout D", found->id));
    }
    if (found->demand == Demand::as_published && options.layout.empty()) {
        return say(around, kExitUsage,
                   fmt::format("--debug {} also needs --layout B, C or D", found->id));
    }
    if (found->demand == Demand::shared) options.shared = true;
    if (found->demand == Demand::as_published) options.as_published = true;
    if (!options.explore.on) options.explore = ExploreSettings{};
    return run_selected_cases(options, around, {found});
}

// --layout auto: before the consumer is started, checks what does not depend on its form. Returns
// an exit status to end with it.
std::optional<int> detect_layout(const Options& options, const Surroundings& around) {
    if (!options.detects_layout || !around.detect_layout) return std::nullopt;
    if (!options.debug.empty() && find_case(around.cases, options.debug) == nullptr)
        return say_no_such_case(options.debug, around);
    const Selection selection = select_cases(around.cases, {options.filters, options.without},
                                             options.level.value_or(kDefaultLevel), nullptr);
    if (!selection.error.empty()) return say(around, kExitUsage, selection.error);
    const std::string trouble = around.detect_layout(options.testee, options.timeout_scale);
    if (!trouble.empty()) return say(around, kExitSuite, trouble);
    return std::nullopt;
}

std::vector<std::string> names_of(const std::vector<Command>& commands) {
    std::vector<std::string> names;
    for (const Command& command : commands) names.push_back(command.name);
    return names;
}

// Words that a person tries as a command, and what does that.
constexpr std::pair<std::string_view, std::string_view> kOptionsForWords[] = {
    {"list", "--list prints the cases"},
    {"cases", "--list prints the cases"},
    {"explain", "--explain CASE says what a case does"},
    {"describe", "--explain CASE says what a case does"},
    {"help", "--help lists the options"},
    {"version", "--version prints the release"},
    {"debug", "--debug CASE -- PROGRAM runs one case step by step"},
    {"run", "without a command the cases run: [OPTIONS...] -- PROGRAM ARGS..."},
    {"test", "without a command the cases run: [OPTIONS...] -- PROGRAM ARGS..."},
    {"check", "without a command the cases run: [OPTIONS...] -- PROGRAM ARGS..."},
};

// What a word that is no command can mean: "--list prints the cases". Empty: not known.
std::string meaning_of(const std::string& word, const Surroundings& around) {
    const auto found = std::ranges::find(kOptionsForWords, word,
                                         &std::pair<std::string_view, std::string_view>::first);
    if (found != std::end(kOptionsForWords)) return std::string(found->second);
    if (find_case(around.cases, word) != nullptr)
        return fmt::format("--explain {} says what the case does, and --filter {} runs it", word,
                           word);
    return text_of_clause(word, around);
}

int run_command(const std::vector<std::string>& arguments, const Surroundings& around) {
    std::vector<std::string_view> names;
    for (const Command& command : around.commands) {
        if (command.name == arguments[0]) {
            return command.run({arguments.begin() + 1, arguments.end()}, around);
        }
        names.push_back(command.name);
    }
    if (std::error_code error; std::filesystem::exists(arguments[0], error))
        return say(
            around, kExitUsage,
            fmt::format("\"{}\" is no command{}: {} [OPTIONS...] -- {}", printable(arguments[0]),
                        kProgramFollows, around.command, printable(shell_command({arguments[0]}))));
    if (const std::string meaning = meaning_of(arguments[0], around); !meaning.empty())
        return say(around, kExitUsage,
                   fmt::format("\"{}\" is no command: {}", printable(arguments[0]), meaning));
    return say(around, kExitUsage,
               fmt::format("there is no command \"{}\"; the commands are {}{} (--help lists the "
                           "options){}",
                           printable(arguments[0]), fmt::join(names, ", "), kProgramFollows,
                           did_you_mean(names, arguments[0])));
}

int run_words(const std::vector<std::string>& arguments, const Surroundings& around) {
    if (!arguments.empty() && !arguments[0].empty() && arguments[0][0] != '-') {
        return run_command(arguments, around);
    }
    const ParsedOptions parsed =
        parse_options(arguments, around.timeout_scale, names_of(around.commands));
    if (!parsed.help.empty()) {
        around.out << parsed.help;
        return finish_output(around, kExitClean);
    }
    if (!parsed.error.empty()) {
        return say(around, kExitUsage, parsed.error + " (--help lists the options)");
    }
    if (parsed.options.version) {
        around.out << around.version;
        return finish_output(around, kExitClean);
    }
    const std::string mistake = check_cases(around.cases);
    if (!mistake.empty()) return say(around, kExitSuite, "the list of cases is wrong: " + mistake);
    const Options& options = parsed.options;
    if (options.list) return list_cases(options, around);
    if (!options.explain.empty()) return explain_case(options, around);
    if (!options.stream.empty() && around.check_stream) {
        const std::string wrong = around.check_stream(options.stream);
        if (!wrong.empty()) return say(around, kExitUsage, printable(wrong));
    }
    if (const auto status = detect_layout(options, around)) return *status;
    if (!options.debug.empty()) return debug_case(options, around);
    const StageSettings settings = settings_of(options, around);
    Selection selection = select_cases(around.cases, {options.filters, options.without},
                                       options.level.value_or(kDefaultLevel), &settings);
    if (!selection.error.empty()) return say(around, kExitUsage, selection.error);
    if (selection.cases.empty()) return say(around, kExitUsage, "no case has this level");
    if (options.shuffle) shuffle_cases(selection.cases, *options.shuffle);
    ParsedShard shard = parse_shard(around.shard);
    if (!shard.error.empty()) return say(around, kExitUsage, shard.error);
    return run_selected_cases(options, around, std::move(selection.cases), std::move(shard.shard));
}

}  // namespace

int run_program(const std::vector<std::string>& arguments, const Surroundings& around) {
    int status = kExitSuite;
    try {
        status = run_words(arguments, around);
    } catch (const std::exception& error) {
        say(around, kExitSuite, "an error of the suite: " + printable(error.what()));
    } catch (...) {
        say(around, kExitSuite, "an error of the suite: an unknown exception");
    }
    return around.stop.status_or(status);
}

}  // namespace kmes::conformance
