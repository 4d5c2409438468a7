// SPDX-License-Identifier: MIT
//
// See parse_error.h.
#include "conformance/main/parse_error.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>

#include "conformance/main/nearest.h"

namespace kmes::conformance {

std::string one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text;
}

std::string meant_option(const CLI::App& app, const std::vector<std::string>& words) {
    std::vector<std::string> known;
    for (const CLI::Option* option : app.get_options()) {
        for (const std::string& name : option->get_lnames()) known.push_back("--" + name);
    }
    const std::vector<std::string_view> names(known.begin(), known.end());
    for (const std::string& word : words) {
        const std::string name = word.substr(0, word.find('='));
        if (name == "--") break;
        if (name.starts_with("--") && std::ranges::find(known, name) == known.end())
            return did_you_mean(names, name);
    }
    return "";
}

}  // namespace kmes::conformance
