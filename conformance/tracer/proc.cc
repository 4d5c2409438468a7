// SPDX-License-Identifier: MIT
//
// Parsers for the files of /proc that the tracer looks at. Knows no ptrace and no buffers.

#include "conformance/tracer/proc.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>

namespace kmes::conformance::tracing {
namespace {

std::string proc_path(pid_t tid, const char* name) {
    return "/proc/" + std::to_string(tid) + "/" + name;
}

std::optional<MapsEntry> parse_maps_line(const std::string& line) {
    MapsEntry entry;
    char permissions[5] = {};
    unsigned major_number = 0;
    unsigned minor_number = 0;
    uint64_t inode = 0;
    int path_at = 0;
    const int fields =
        sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %x:%x %" SCNu64 " %n",
               &entry.start, &entry.end, permissions, &entry.offset_bytes, &major_number,
               &minor_number, &inode, &path_at);
    if (fields != 7) return std::nullopt;
    entry.readable = permissions[0] == 'r';
    entry.writable = permissions[1] == 'w';
    entry.executable = permissions[2] == 'x';
    entry.shared = permissions[3] == 's';
    entry.file = {makedev(major_number, minor_number), inode};
    if (path_at > 0) entry.path = line.substr(static_cast<size_t>(path_at));
    return entry;
}

}  // namespace

std::optional<std::string> read_small_file(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return std::nullopt;
    std::string content;
    char chunk[8192];
    ssize_t got = 0;
    while ((got = read(fd, chunk, sizeof chunk)) > 0)
        content.append(chunk, static_cast<size_t>(got));
    close(fd);
    if (got < 0) return std::nullopt;
    return content;
}

std::vector<MapsEntry> read_maps(pid_t tid) {
    std::vector<MapsEntry> entries;
    const auto content = read_small_file(proc_path(tid, "maps"));
    if (!content) return entries;
    std::istringstream lines(*content);
    for (std::string line; std::getline(lines, line);) {
        if (auto entry = parse_maps_line(line)) entries.push_back(std::move(*entry));
    }
    return entries;
}

std::optional<FileIdentity> identity_of_fd(pid_t tid, int fd) {
    struct stat info{};
    const std::string path = proc_path(tid, "fd/") + std::to_string(fd);
    if (stat(path.c_str(), &info) != 0) return std::nullopt;
    return FileIdentity{info.st_dev, info.st_ino};
}

std::vector<int> list_fds(pid_t tid) {
    std::vector<int> fds;
    DIR* directory = opendir(proc_path(tid, "fd").c_str());
    if (directory == nullptr) return fds;
    while (const dirent* entry = readdir(directory)) {
        if (entry->d_name[0] != '.') fds.push_back(atoi(entry->d_name));
    }
    closedir(directory);
    return fds;
}

std::optional<ThreadStatus> read_status(pid_t tid) {
    const auto content = read_small_file(proc_path(tid, "status"));
    if (!content) return std::nullopt;
    ThreadStatus status;
    std::istringstream lines(*content);
    for (std::string line; std::getline(lines, line);) {
        uint64_t count = 0;
        int process = 0;
        if (sscanf(line.c_str(), "State: %c", &status.state) == 1) continue;
        if (sscanf(line.c_str(), "Tgid: %d", &process) == 1) status.process = process;
        if (sscanf(line.c_str(), "PPid: %d", &process) == 1) status.parent = process;
        if (sscanf(line.c_str(), "voluntary_ctxt_switches: %" SCNu64, &count) == 1 ||
            sscanf(line.c_str(), "nonvoluntary_ctxt_switches: %" SCNu64, &count) == 1) {
            status.context_switches += count;
        }
    }
    return status;
}

std::optional<CurrentCall> read_current_call(pid_t tid) {
    const auto content = read_small_file(proc_path(tid, "syscall"));
    if (!content) return std::nullopt;
    CurrentCall call;
    if (content->rfind("running", 0) == 0) return call;
    call.blocked = true;
    uint64_t* a = call.arguments;
    const int fields =
        sscanf(content->c_str(),
               "%ld %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64,
               &call.number, &a[0], &a[1], &a[2], &a[3], &a[4], &a[5]);
    if (fields < 1) return std::nullopt;
    return call;
}

}  // namespace kmes::conformance::tracing
