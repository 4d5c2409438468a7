// SPDX-License-Identifier: MIT
//
// See layout_choice.h.
#include "conformance/main/layout_choice.h"

#include <fmt/format.h>
#include <string.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string_view>

#include "conformance/report/text.h"

namespace kmes::conformance {

const Layout* layout_of_option(std::span<char* const> arguments) {
    constexpr std::string_view kOption = "--layout";
    for (std::size_t i = 1; i < arguments.size(); ++i) {
        const std::string_view word = arguments[i];
        if (word == "--") break;
        if (word == kOption && i + 1 < arguments.size()) return find_layout(arguments[i + 1]);
        if (word.starts_with("--layout=")) return find_layout(word.substr(kOption.size() + 1));
    }
    return nullptr;
}

std::string wrong_layout_variable() {
    const char* name = std::getenv(kLayoutVariable);
    if (name == nullptr || find_layout(name) != nullptr) return {};
    return fmt::format("{} is \"{}\"; expected {}", kLayoutVariable, printable(name), kRightLayout);
}

std::string execute_in_layout(const Layout& layout, char* const* arguments) {
    if (setenv(kLayoutVariable, std::string(layout.name).c_str(), 1) == 0)
        execv("/proc/self/exe", arguments);
    return fmt::format("cannot execute this program again for form {} of the layout: {}",
                       layout.name, strerror(errno));
}

}  // namespace kmes::conformance
