// SPDX-License-Identifier: MIT
// Shared functions of the commands. See command.h.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <new>
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
        constexpr std::string_view kLine = "kmesctl: no memory is left\n";
        [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kLine.data(), kLine.size());
    }
}

std::string reason_of(const std::exception& error) {
    if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "no memory is left";
    return error.what();
}

std::string counted(std::uint64_t count, std::string_view noun) {
    return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::uint64_t number_option(const char* option, const std::string& text, std::uint64_t least,
                            std::uint64_t most) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stopped != end || value < least || value > most)
        throw Failure(kExitUsage, fmt::format("{} is \"{}\"; expected a whole number from {} to {}",
                                              option, text, least, most));
    return value;
}

std::string wrong_address(const std::string& address) {
    struct sockaddr_un parsed = {};
    socklen_t length = 0;
    if (kmes_socket_address(address.c_str(), &parsed, &length) == 0) return "";
    return fmt::format(
        "\"{}\" is not an address; expected a path of at most 107 bytes, or @ and a name", address);
}

std::string wrong_path(const std::string& path) {
    return path.empty() ? "the name of the file is empty" : "";
}

void add_socket_option(CLI::App& app, std::string* address) {
    app.add_option("--socket", *address,
                   "address of a producer in userspace: a path, or @NAME (default: $KMES_SOCKET, "
                   "else the system calls, /dev/kmes, /run/kmes/producer.socket)")
        ->type_name("ADDRESS")
        ->check(wrong_address);
}

void choose_socket(const std::string& address) {
    if (!address.empty()) setenv(KMES_SOCKET_ENVIRONMENT, address.c_str(), 1);
    const char* named = getenv(KMES_SOCKET_ENVIRONMENT);
    if (named == nullptr || *named == '\0') return;
    if (const std::string wrong = wrong_address(named); !wrong.empty())
        throw Failure(kExitUsage, fmt::format("{}: {}", KMES_SOCKET_ENVIRONMENT, wrong));
}

}  // namespace kmes::kmesctl
