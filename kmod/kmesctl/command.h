// SPDX-License-Identifier: GPL-2.0-only
//
// What kmesctl is asked for: its command line, without any device.
#ifndef KMES_KMOD_KMESCTL_COMMAND_H_
#define KMES_KMOD_KMESCTL_COMMAND_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kmes::kmesctl {

enum class Verb { emit, resize, registry_available, statistics, list };

struct Command {
    Verb verb = Verb::list;
    std::string device = "/dev/kmes";
    bool json = false;  // statistics, list
    // emit
    std::string type;
    std::string payload;
    std::optional<std::string> payload_file;  // "-": standard input
    std::uint64_t count = 1;
    // resize, registry-available: 0 leaves a value as it is
    std::uint64_t buffer_capacity = 0;
    std::uint64_t max_event_size = 0;
    // statistics; nothing: all CPUs
    std::optional<std::uint32_t> cpu;
};

struct ParsedCommand {
    Command command;
    std::string error;  // one line; not empty: bad usage
    std::string help;   // not empty: --help was asked, print this
};

// `arguments` without the name of the program.
ParsedCommand parse_command(const std::vector<std::string>& arguments);

// A decimal number of bytes, or one with K, M (KiB, MiB) behind it; nothing where it is none.
std::optional<std::uint64_t> parse_bytes(const std::string& text);

}  // namespace kmes::kmesctl

#endif  // KMES_KMOD_KMESCTL_COMMAND_H_
