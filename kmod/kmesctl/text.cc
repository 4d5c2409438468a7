// SPDX-License-Identifier: GPL-2.0-only
//
// See text.h.
#include "kmod/kmesctl/text.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

namespace kmes::kmesctl {
namespace {

using Json = nlohmann::ordered_json;

Json json_of(const kmes_ioctl_statistics& cpu) {
    return {{"cpu", cpu.cpu},
            {"phase", cpu.phase == 0 ? "boot" : "rings"},
            {"events", cpu.events},
            {"bytes", cpu.bytes},
            {"dropped", cpu.dropped},
            {"dropped_nested", cpu.dropped_nested},
            {"dropped_no_cpu", cpu.dropped_no_cpu},
            {"overwritten", cpu.overwritten},
            {"wakes", cpu.wakes},
            {"corrupt", cpu.corrupt},
            {"swaps", cpu.swaps},
            {"left_behind", cpu.left_behind},
            {"last_sequence", cpu.last_sequence},
            {"capacity", cpu.capacity},
            {"max_event_size", cpu.max_event_size},
            {"longest_pause_ns", cpu.longest_pause_ns}};
}

Json json_of(const kmes_buffer_info& buffer) {
    return {{"cpu", buffer.cpu},
            {"inode", buffer.inode},
            {"capacity", buffer.capacity},
            {"generation", buffer.generation},
            {"write_pos", buffer.write_pos},
            {"tail_pos", buffer.tail_pos},
            {"mappings", buffer.mappings},
            {"descriptors", buffer.descriptors},
            {"is_retired", buffer.is_retired != 0}};
}

std::string text_of(const Json& value) {
    if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
    return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string line_of(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
    std::string line;
    for (std::size_t i = 0; i < cells.size(); ++i)
        line += fmt::format("{}{:>{}}", i == 0 ? "" : "  ", cells[i], widths[i]);
    return line + '\n';
}

// Returns a line with the names of the fields, and a line for each object.
std::string table(const Json& rows) {
    if (rows.empty()) return "none\n";
    std::vector<std::vector<std::string>> lines(1);
    for (const auto& [name, value] : rows.front().items()) lines.front().push_back(name);
    for (const Json& row : rows) {
        lines.emplace_back();
        for (const Json& value : row) lines.back().push_back(text_of(value));
    }
    std::vector<std::size_t> widths(lines.front().size(), 0);
    for (const auto& cells : lines) {
        for (std::size_t i = 0; i < cells.size(); ++i)
            widths[i] = std::max(widths[i], cells[i].size());
    }
    std::string text;
    for (const auto& cells : lines) text += line_of(cells, widths);
    return text;
}

template <typename T>
Json rows_of(const std::vector<T>& all) {
    Json rows = Json::array();
    for (const T& each : all) rows.push_back(json_of(each));
    return rows;
}

}  // namespace

std::string statistics_text(const std::vector<kmes_ioctl_statistics>& all) {
    return table(rows_of(all));
}

std::string statistics_json(const std::vector<kmes_ioctl_statistics>& all) {
    return rows_of(all).dump(1) + '\n';
}

std::string buffers_text(const std::vector<kmes_buffer_info>& all) {
    return table(rows_of(all));
}

std::string buffers_json(const std::vector<kmes_buffer_info>& all) {
    return rows_of(all).dump(1) + '\n';
}

void write_error_line(std::string_view line) {
    const std::string text = fmt::format("kmesctl: {}\n", line);
    std::string_view rest = text;
    while (!rest.empty()) {
        const ssize_t written = write(STDERR_FILENO, rest.data(), rest.size());
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return;
        rest.remove_prefix(static_cast<std::size_t>(written));
    }
}

std::string explain_error(Verb verb, int error) {
    const bool configures = verb == Verb::resize || verb == Verb::registry_available;
    switch (error) {
        case EPERM:
            return fmt::format("{} is needed for this", verb == Verb::emit ? "CAP_AUDIT_WRITE"
                                                        : configures       ? "CAP_SYS_ADMIN"
                                                                           : "CAP_AUDIT_READ");
        case EINVAL:
            if (verb == Verb::emit) return "the type is not UTF-8";
            return configures ? "a value is not valid; nothing has changed"
                              : "there is no such CPU";
        case ENOSPC:
            return "the event is larger than half of the buffer, or than MaxEventSize";
        case EBUSY:
            return "this CPU came online after the module was loaded; load the module again, or "
                   "emit "
                   "on another CPU (taskset)";
        case ENOMEM:
            return configures ? "no memory for the new buffers; nothing has changed"
                              : "no memory for the call";
        case EALREADY:
            return "the boot phase is over";
        case ENOTTY:
            return "this is not a device of the KMES module, or its version does not match";
        default:
            return strerror(error);
    }
}

}  // namespace kmes::kmesctl
