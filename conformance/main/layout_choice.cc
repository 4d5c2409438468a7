// SPDX-License-Identifier: MIT
//
// See layout_choice.h.
#include "conformance/main/layout_choice.h"

#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

constexpr std::string_view kOption = "--layout";

// The value of --layout in the word with this index. The option may be the previous word.
std::optional<std::string_view> layout_value(std::span<char* const> arguments, std::size_t index) {
    const std::string_view word = arguments[index];
    if (index > 1 && arguments[index - 1] == kOption) return word;
    if (word.starts_with(kOption) && word.substr(kOption.size()).starts_with('='))
        return word.substr(kOption.size() + 1);
    return std::nullopt;
}

// The index of the first word before -- that contains a value of --layout.
std::optional<std::size_t> layout_word(std::span<char* const> arguments) {
    for (std::size_t i = 1; i < arguments.size() && arguments[i] != std::string_view("--"); ++i) {
        if (layout_value(arguments, i)) return i;
    }
    return std::nullopt;
}

}  // namespace

bool is_layout_value(std::string_view value) {
    return value == kAutomaticLayout || find_layout(value) != nullptr;
}

const Layout* layout_of_option(std::span<char* const> arguments) {
    const std::optional<std::size_t> word = layout_word(arguments);
    return word ? find_layout(*layout_value(arguments, *word)) : nullptr;
}

std::optional<std::size_t> automatic_layout_word(std::span<char* const> arguments) {
    const std::optional<std::size_t> word = layout_word(arguments);
    return word && *layout_value(arguments, *word) == kAutomaticLayout ? word : std::nullopt;
}

std::string wrong_layout_variable() {
    const char* name = std::getenv(kLayoutVariable);
    if (name == nullptr || find_layout(name) != nullptr) return {};
    return fmt::format("{} is \"{}\"; expected {}", kLayoutVariable, printable(name), kRightForm);
}

std::string execute_in_layout(const Layout& layout, char* const* arguments) {
    if (setenv(kLayoutVariable, std::string(layout.name).c_str(), 1) == 0)
        execv("/proc/self/exe", arguments);
    return fmt::format("cannot execute this program again for form {} of the layout: {}",
                       layout.name, strerror(errno));
}

}  // namespace kmes::conformance
