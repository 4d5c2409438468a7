// SPDX-License-Identifier: MIT
//
// kmes-conformance from its arguments to its exit status.
#include "conformance/main/program.h"

#include <fmt/format.h>

#include <exception>
#include <optional>
#include <utility>

#include "conformance/main/case_run.h"
#include "conformance/main/nearest.h"
#include "conformance/main/options.h"
#include "conformance/main/selection.h"
#include "conformance/main/shard.h"
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

int say_no_such_case(const std::string& id, const Surroundings& around) {
    std::string line = "there is no case \"" + printable(id) + "\"";
    const auto nearest = nearest_ids(around.cases, id);
    for (std::size_t i = 0; i < nearest.size(); ++i) {
        line += (i == 0 ? "; nearest: " : ", ") + std::string(nearest[i]);
    }
    return say(around, kExitUsage, line);
}

int explain_case(const Options& options, const Surroundings& around) {
    const Case* found = find_case(around.cases, options.explain);
    if (found == nullptr) return say_no_such_case(options.explain, around);
    std::string published = published_clause(found->clause, other_layout());
    if (!published.empty()) published = "published:   " + published + "\n";
    around.out << fmt::format(
        "{}\n\nlevel:       {}\nclause:      {}\n{}title:       {}\n\nwhat is done: {}\n\nwhat is "
        "right: {}\n",
        found->id, level_name(found->level), found->clause, published, found->title,
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

int run_command(const std::vector<std::string>& arguments, const Surroundings& around) {
    std::vector<std::string_view> names;
    for (const Command& command : around.commands) {
        if (command.name == arguments[0]) {
            return command.run({arguments.begin() + 1, arguments.end()}, around);
        }
        names.push_back(command.name);
    }
    return say(around, kExitUsage,
               fmt::format("there is no command \"{}\"; the commands are {}; the program to test "
                           "follows after -- (--help lists the options){}",
                           printable(arguments[0]), fmt::join(names, ", "),
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
