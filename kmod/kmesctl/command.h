// SPDX-License-Identifier: GPL-2.0-only
//
// Parses the command line of kmesctl for the module. Uses no device.
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
    // resize, registry-available; 0 keeps the current value
    std::uint64_t buffer_capacity = 0;
    std::uint64_t max_event_size = 0;
    // statistics; empty: all CPUs
    std::optional<std::uint32_t> cpu;
};

struct ParsedCommand {
    Command command;
    std::string error;  // one line, or empty if the usage is correct
    std::string help;   // the text to print, or empty without --help
};

// `arguments` exclude the name of the program.
ParsedCommand parse_command(const std::vector<std::string>& arguments);

// Parses a decimal number of bytes, optionally with K or M (KiB, MiB). Returns nothing for any
// other text.
std::optional<std::uint64_t> parse_bytes(const std::string& text);

}  // namespace kmes::kmesctl

#endif  // KMES_KMOD_KMESCTL_COMMAND_H_
