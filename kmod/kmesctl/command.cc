// SPDX-License-Identifier: GPL-2.0-only
//
// See command.h.
#include "kmod/kmesctl/command.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <bit>
#include <charconv>

namespace kmes::kmesctl {
namespace {

constexpr std::uint64_t kKib = 1024;
constexpr std::uint64_t kMib = kKib * kKib;
constexpr std::uint64_t kLargestTypeBytes = 65535;

// The values as text. They are parsed here and not by CLI11, so that the error line has the valid
// values.
struct RawCommand {
    std::string count;
    std::string capacity;
    std::string max_event_size;
    std::string cpu;
};

std::string wrong_value(std::string_view option, const std::string& value,
                        std::string_view expected) {
    return fmt::format("{} is \"{}\"; expected {}", option, value, expected);
}

std::optional<std::uint64_t> parse_number(const std::string& text) {
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [stopped, error] = std::from_chars(text.data(), end, value);
    if (error != std::errc{} || stopped != end) return std::nullopt;
    return value;
}

void declare_sizes(CLI::App& app, RawCommand& raw) {
    app.add_option("--capacity", raw.capacity,
                   "capacity of each CPU's buffer: a power of two, 64K to 256M; default: unchanged")
        ->type_name("BYTES");
    app.add_option("--max-event-size", raw.max_event_size,
                   "MaxEventSize, 1K to 4M; default: unchanged")
        ->type_name("BYTES");
}

void declare_emit(CLI::App& app, RawCommand& raw, Command& command) {
    app.add_option("type", command.type, "type of the event, UTF-8")->required();
    auto* payload = app.add_option("payload", command.payload, "payload of the event");
    app.add_option("--file", command.payload_file, "read the payload from FILE (-: standard input)")
        ->type_name("FILE")
        ->excludes(payload);
    app.add_option("--count", raw.count, "emit N such events (default 1)")->type_name("N");
}

// In the order of Verb.
void declare(CLI::App& app, RawCommand& raw, Command& command) {
    app.add_option("--device", command.device, "device of the module (default /dev/kmes)")
        ->type_name("PATH");
    app.require_subcommand(1);
    declare_emit(*app.add_subcommand("emit", "emit an event on the current CPU"), raw, command);
    declare_sizes(*app.add_subcommand("resize", "configure the buffers of all CPUs"), raw);
    declare_sizes(*app.add_subcommand("registry-available",
                                      "end the boot phase: replace boot buffers by rings"),
                  raw);
    CLI::App* statistics = app.add_subcommand("statistics", "print the counts of each producer");
    statistics->add_option("--cpu", raw.cpu, "print those of CPU N only")->type_name("N");
    statistics->add_flag("--json", command.json, "print JSON");
    app.add_subcommand("list", "print the existing buffers")
        ->add_flag("--json", command.json, "print JSON");
}

std::string check_sizes(const RawCommand& raw, Command& command) {
    if (!raw.capacity.empty()) {
        const auto bytes = parse_bytes(raw.capacity);
        if (!bytes || !std::has_single_bit(*bytes) || *bytes < 64 * kKib || *bytes > 256 * kMib)
            return wrong_value("--capacity", raw.capacity, "a power of two from 64K to 256M");
        command.buffer_capacity = *bytes;
    }
    if (!raw.max_event_size.empty()) {
        const auto bytes = parse_bytes(raw.max_event_size);
        if (!bytes || *bytes < kKib || *bytes > 4 * kMib)
            return wrong_value("--max-event-size", raw.max_event_size, "1K to 4M");
        command.max_event_size = *bytes;
    }
    const bool is_empty = command.buffer_capacity == 0 && command.max_event_size == 0;
    if (command.verb == Verb::resize && is_empty)
        return "resize needs --capacity, --max-event-size or both";
    return "";
}

std::string check(const RawCommand& raw, Command& command) {
    if (command.device.empty()) return wrong_value("--device", "", "the path of a device");
    if (command.verb == Verb::emit) {
        if (command.type.empty() || command.type.size() > kLargestTypeBytes)
            return "an event's type has 1 to 65535 bytes";
        if (!raw.count.empty()) {
            const auto count = parse_number(raw.count);
            if (!count || *count == 0) return wrong_value("--count", raw.count, "1 or more");
            command.count = *count;
        }
    }
    if (!raw.cpu.empty()) {
        const auto cpu = parse_number(raw.cpu);
        if (!cpu || *cpu > UINT32_MAX) return wrong_value("--cpu", raw.cpu, "the number of a CPU");
        command.cpu = static_cast<std::uint32_t>(*cpu);
    }
    return check_sizes(raw, command);
}

Verb verb_of(const CLI::App& app) {
    const std::string name = app.get_subcommands().front()->get_name();
    if (name == "emit") return Verb::emit;
    if (name == "resize") return Verb::resize;
    if (name == "registry-available") return Verb::registry_available;
    return name == "statistics" ? Verb::statistics : Verb::list;
}

std::string one_line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    while (!text.empty() && text.back() == ' ') text.pop_back();
    return text;
}

}  // namespace

std::optional<std::uint64_t> parse_bytes(const std::string& text) {
    if (text.empty()) return std::nullopt;
    const char unit = text.back();
    const std::uint64_t factor = unit == 'K' ? kKib : unit == 'M' ? kMib : 1;
    const auto number = parse_number(factor == 1 ? text : text.substr(0, text.size() - 1));
    if (!number || *number > UINT64_MAX / factor) return std::nullopt;
    return *number * factor;
}

ParsedCommand parse_command(const std::vector<std::string>& arguments) {
    ParsedCommand parsed;
    CLI::App app("Emits events to the KMES module of this machine, and configures and inspects it.",
                 "kmesctl");
    app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::Throw);
    RawCommand raw;
    declare(app, raw, parsed.command);
    app.footer("Exit status: 0; 1 an error of the module, or no module; 2 bad usage.");
    std::vector<std::string> backwards(arguments.rbegin(), arguments.rend());
    try {
        app.parse(backwards);
    } catch (const CLI::CallForHelp&) {
        const auto asked = app.get_subcommands();
        parsed.help = asked.empty() ? app.help() : asked.front()->help();
        return parsed;
    } catch (const CLI::ParseError& error) {
        parsed.error = one_line(error.what());
        return parsed;
    }
    parsed.command.verb = verb_of(app);
    parsed.error = check(raw, parsed.command);
    return parsed;
}

}  // namespace kmes::kmesctl
