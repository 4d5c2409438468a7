// SPDX-License-Identifier: MIT
// Shared functions of the commands. See command.h.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <string>

#include "kmes/user/socket_protocol.h"
#include "kmesctl/command.h"
#include "kmesctl/escape.h"
#include "kmod/kmesctl/text.h"

namespace kmes::kmesctl {

void say(std::string_view line) noexcept {
    try {
        write_error_line(escaped(line));
    } catch (const std::exception&) {  // no memory for the text
    }
}

std::uint64_t number_option(const char* option, const std::string& text, std::uint64_t least,
                            std::uint64_t most) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stopped != end || value < least || value > most)
        throw Failure(kExitUsage, fmt::format("{} is \"{}\"; a number from {} to {} is right",
                                              option, text, least, most));
    return value;
}

void add_socket_option(CLI::App& app, std::string* address) {
    app.add_option("--socket", *address,
                   "address of a producer in userspace: a path, or @NAME (default: $KMES_SOCKET, "
                   "else the system calls, /dev/kmes, /run/kmes/producer.socket)")
        ->type_name("ADDRESS");
}

void choose_socket(const std::string& address) {
    if (!address.empty()) setenv(KMES_SOCKET_ENVIRONMENT, address.c_str(), 1);
}

}  // namespace kmes::kmesctl
