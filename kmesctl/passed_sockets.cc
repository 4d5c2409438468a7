// SPDX-License-Identifier: MIT
//
// See passed_sockets.h.
#include "kmesctl/passed_sockets.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "kmesctl/command.h"

namespace kmes::kmesctl {
namespace {

constexpr int kFirstFd = 3;  // SD_LISTEN_FDS_START
constexpr std::uint64_t kMostSockets = 2;

// Reads and removes a variable.
std::optional<std::string> take_variable(const char* name) {
    const char* value = getenv(name);
    if (value == nullptr) return std::nullopt;
    std::string copy = value;
    unsetenv(name);
    return copy;
}

std::uint64_t number(const char* name, const std::string& text) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stopped != end)
        throw Failure(kExitFailed,
                      fmt::format("{} is \"{}\"; a service manager sets a number", name, text));
    return value;
}

std::vector<std::string_view> split(std::string_view names) {
    std::vector<std::string_view> parts;
    for (;;) {
        const std::size_t colon = names.find(':');
        parts.push_back(names.substr(0, colon));
        if (colon == std::string_view::npos) return parts;
        names.remove_prefix(colon + 1);
    }
}

Serves serves_of(std::string_view name) {
    if (name == "attach") return Serves::kAttach;
    if (name == "emit") return Serves::kEmit;
    return Serves::kAttachAndEmit;
}

}  // namespace

std::vector<PassedSocket> passed_sockets() {
    const auto process = take_variable("LISTEN_PID");
    const auto count_text = take_variable("LISTEN_FDS");
    const auto names_text = take_variable("LISTEN_FDNAMES");
    if (!process || !count_text) return {};
    if (number("LISTEN_PID", *process) != static_cast<std::uint64_t>(getpid())) return {};
    const std::uint64_t count = number("LISTEN_FDS", *count_text);
    if (count > kMostSockets)
        throw Failure(kExitFailed, fmt::format("LISTEN_FDS is {}; expected one socket, or two with "
                                               "the names attach and emit",
                                               count));
    std::vector<std::string_view> names(count);
    if (names_text && count > 0) names = split(*names_text);
    if (names.size() != count)
        throw Failure(kExitFailed, fmt::format("LISTEN_FDNAMES is \"{}\", and LISTEN_FDS is {}; "
                                               "expected a name for each socket",
                                               *names_text, count));
    std::vector<PassedSocket> sockets;
    for (std::size_t i = 0; i < count; ++i) {
        const int fd = kFirstFd + static_cast<int>(i);
        // Check now: later the number may be that of another file of this process.
        if (fcntl(fd, F_GETFD) < 0)
            throw Failure(
                kExitFailed,
                fmt::format("LISTEN_FDS is {}, and descriptor {} is not open", count, fd));
        sockets.push_back({fd, serves_of(names[i])});
    }
    return sockets;
}

}  // namespace kmes::kmesctl
