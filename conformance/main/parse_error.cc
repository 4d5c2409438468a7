// SPDX-License-Identifier: MIT
//
// See parse_error.h.
#include "conformance/main/parse_error.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "conformance/main/nearest.h"

namespace kmes::conformance {
namespace {

// CLI11 breaks some of its lines.
std::string one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text;
}

// Names that other programs use, and what they are here.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"--verbose", "-v"},     {"--silent", "--quiet"},
    {"-q", "--quiet"},       {"-j", "--jobs"},
    {"-f", "--filter"},      {"--case", "--filter"},
    {"--only", "--filter"},  {"-l", "--list"},
    {"-o", "--report-file"}, {"--output", "--report-file"},
    {"-V", "--version"},     {"-?", "--help"},
};

std::string meant_option(const CLI::App& app, const std::string& name) {
    std::vector<std::string> known;
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& each : option->get_lnames()) known.push_back("--" + each);
        for (const std::string& each : option->get_snames()) known.push_back("-" + each);
    }
    for (const auto& [other, meant] : kOtherNames) {
        if (name == other && std::ranges::find(known, meant) != known.end())
            return "; did you mean " + std::string(meant) + "?";
    }
    return did_you_mean({known.begin(), known.end()}, name);
}

// The short flag of the command line; CLI11 leaves "-=3" of "-v=3", and "-3" of "-v3".
std::string flag_with_value(const CLI::App& app, const std::string& rest) {
    const bool has_value =
        rest.starts_with("-=") ||
        (rest.size() > 1 && std::isdigit(static_cast<unsigned char>(rest[1])) != 0);
    if (!has_value) return "";
    for (const CLI::Option* option : app.get_options()) {
        if (option->count() == 0 || option->get_items_expected_max() != 0) continue;
        for (const std::string& name : option->get_snames()) return "-" + name;
    }
    return "";
}

// The option with too many or too few values: CLI11 begins its line with the name. Empty: none.
std::string wrong_count(const std::string& line, const CLI::App& app) {
    const std::string name = line.substr(0, line.find(':'));
    const CLI::Option* const option = app.get_option_no_throw(name);
    if (option == nullptr) return "";
    const auto most = static_cast<std::size_t>(option->get_items_expected_max());
    if (most == 1 && option->count() > most)
        return name + " is given " + std::to_string(option->count()) + " times; expected once";
    if (option->get_items_expected_min() == 1 && option->count() == 0)
        return name + " has no value; expected " + option->get_type_name();
    return "";
}

}  // namespace

std::string describe(const CLI::ParseError& error, const CLI::App& app,
                     const std::string& no_word) {
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
        const std::string text = wrong_count(one_line(error.what()), app);
        if (!text.empty()) return text;
    }
    const std::vector<std::string> extra = app.remaining();
    if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr || extra.empty())
        return one_line(error.what());
    // The value of a misspelt option is extra as well.
    const auto option = std::ranges::find_if(
        extra, [](const std::string& word) { return word.size() > 1 && word[0] == '-'; });
    if (option != extra.end()) {
        if (const std::string flag = flag_with_value(app, *option); !flag.empty())
            return flag + " takes no value";
        const std::string name = option->substr(0, option->find('='));
        return "there is no option " + name + meant_option(app, name);
    }
    const std::string word = "\"" + extra.front() + "\" is ";
    const bool takes_words = std::ranges::any_of(
        app.get_options(), [](const CLI::Option* each) { return each->get_positional(); });
    return word + (takes_words ? "one word too many" : "no option" + no_word);
}

}  // namespace kmes::conformance
