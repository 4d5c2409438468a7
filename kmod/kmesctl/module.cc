// SPDX-License-Identifier: GPL-2.0-only
//
// Runs the commands of kmesctl for the KMES module. Each command is one ioctl of <linux/kmes.h>;
// emit makes one for each event, statistics one for each CPU. See module.h.
#include "kmod/kmesctl/module.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/kmes.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "kmod/kmesctl/command.h"
#include "kmod/kmesctl/text.h"

namespace kmes::kmesctl {
namespace {

constexpr int kFailed = 1;
constexpr int kBadUsage = 2;
// More than the largest MaxEventSize.
constexpr std::size_t kPayloadBytesAtMost = std::size_t{5} << 20;

int say_line(int status, const std::string& line) {
    write_error_line(line);
    return status;
}

int refused(const Command& command, int error) {
    return say_line(kFailed,
                    fmt::format("{}: {}", command.device, explain_error(command.verb, error)));
}

std::uint64_t address_of(const void* pointer) {
    return reinterpret_cast<std::uintptr_t>(pointer);
}

// Returns false if the file cannot be read; errno has the reason.
bool read_payload(const std::string& path, std::string& payload) {
    const int fd = path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    char piece[65536];
    ssize_t bytes = 0;
    while (payload.size() < kPayloadBytesAtMost && (bytes = read(fd, piece, sizeof piece)) > 0)
        payload.append(piece, static_cast<std::size_t>(bytes));
    const int error = errno;
    if (fd != STDIN_FILENO) close(fd);
    errno = error;
    return bytes >= 0;
}

int emit(int fd, Command command) {
    if (command.payload_file && !read_payload(*command.payload_file, command.payload))
        return say_line(kFailed, fmt::format("{}: {}", *command.payload_file, strerror(errno)));
    kmes_ioctl_emit event{};
    event.type_address = address_of(command.type.data());
    event.type_len = static_cast<__u16>(command.type.size());
    event.payload_address = address_of(command.payload.data());
    event.payload_len = static_cast<__u32>(command.payload.size());
    for (std::uint64_t i = 0; i < command.count; ++i) {
        if (ioctl(fd, KMES_IOC_EMIT, &event) != 0) return refused(command, errno);
    }
    return 0;
}

int configure(int fd, const Command& command) {
    kmes_ioctl_configure values{};
    values.buffer_capacity = command.buffer_capacity;
    values.max_event_size = command.max_event_size;
    const unsigned long request =
        command.verb == Verb::resize ? KMES_IOC_CONFIGURE : KMES_IOC_REGISTRY_AVAILABLE;
    return ioctl(fd, request, &values) == 0 ? 0 : refused(command, errno);
}

int statistics(int fd, const Command& command) {
    std::vector<kmes_ioctl_statistics> all;
    for (std::uint32_t cpu = command.cpu.value_or(0);; ++cpu) {
        kmes_ioctl_statistics one{};
        one.cpu = cpu;
        if (ioctl(fd, KMES_IOC_STATISTICS, &one) != 0) {
            // The previous CPU was the last one.
            if (errno == EINVAL && !command.cpu && !all.empty()) break;
            return refused(command, errno);
        }
        all.push_back(one);
        if (command.cpu) break;
    }
    fmt::print("{}", command.json ? statistics_json(all) : statistics_text(all));
    return 0;
}

int list(int fd, const Command& command) {
    std::vector<kmes_buffer_info> all(64);
    for (;;) {
        kmes_ioctl_buffers question{};
        question.buffers_address = address_of(all.data());
        question.count = static_cast<__u32>(all.size());
        const int error = ioctl(fd, KMES_IOC_BUFFERS, &question) == 0 ? 0 : errno;
        const bool is_short = error == ERANGE && question.count > all.size();
        if (error != 0 && !is_short) return refused(command, error);
        all.resize(question.count);
        if (error == 0) break;
    }
    fmt::print("{}", command.json ? buffers_json(all) : buffers_text(all));
    return 0;
}

int run(const Command& command) {
    const int fd = open(command.device.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return say_line(kFailed, fmt::format("{}: {}{}", command.device, strerror(errno),
                                             errno == ENOENT ? "; is kmes.ko loaded?" : ""));
    int status = 0;
    switch (command.verb) {
        case Verb::emit:
            status = emit(fd, command);
            break;
        case Verb::resize:
        case Verb::registry_available:
            status = configure(fd, command);
            break;
        case Verb::statistics:
            status = statistics(fd, command);
            break;
        case Verb::list:
            status = list(fd, command);
            break;
    }
    close(fd);
    if (status == 0 && fflush(stdout) != 0)
        return say_line(kFailed, "cannot write to standard output");
    return status;
}

}  // namespace

int run_module_command(const std::vector<std::string>& words) {
    const ParsedCommand parsed = parse_command(words);
    if (!parsed.help.empty()) {
        fmt::print("{}", parsed.help);
        return fflush(stdout) == 0 ? 0 : say_line(kFailed, "cannot write to standard output");
    }
    if (!parsed.error.empty()) return say_line(kBadUsage, parsed.error + " (see --help)");
    return run(parsed.command);
}

}  // namespace kmes::kmesctl
