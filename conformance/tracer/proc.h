// SPDX-License-Identifier: MIT
//
// Reads the facts in /proc about a thread and its process: memory map, state, current system call,
// open files. Reads only; knows no ptrace and no buffers.

#ifndef CONFORMANCE_TRACER_PROC_H_
#define CONFORMANCE_TRACER_PROC_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kmes::conformance::tracing {

// The identity of an open file: equal for two descriptors of the same file (E19).
struct FileIdentity {
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const FileIdentity&) const = default;
};

struct MapsEntry {
    uint64_t start = 0;
    uint64_t end = 0;
    bool readable = false;
    bool writable = false;
    bool executable = false;
    bool shared = false;
    uint64_t offset_bytes = 0;
    FileIdentity file;
    std::string path;
};

// All functions take any live thread of the process. If something cannot be read (the thread is
// gone), the result is empty.
std::vector<MapsEntry> read_maps(pid_t tid);
// The file that the process was started from, as its memory map names it.
std::string program_of(pid_t tid);
// The target of a descriptor's link in /proc: a path, or for example `anon_inode:[io_uring]`.
std::string fd_link(pid_t tid, int fd);
std::optional<FileIdentity> identity_of_fd(pid_t tid, int fd);
std::vector<int> list_fds(pid_t tid);

struct ThreadStatus {
    char state = '?';  // R running, S asleep, D uninterruptible, t traced, Z and X gone
    pid_t process = 0;
    pid_t parent = 0;
    pid_t tracer = 0;               // the thread that traces it; 0: none
    uint64_t caught_signals = 0;    // a bit for each, from 1 on
    uint64_t context_switches = 0;  // grows whenever the thread has run and given up the processor
    uint64_t rests = 0;             // the voluntary ones: it slept, or was stopped
};
std::optional<ThreadStatus> read_status(pid_t tid);
// The processes that this thread traces and that have not been reaped.
std::vector<pid_t> processes_traced_by(pid_t tracer);

struct CurrentCall {
    bool blocked = false;
    long number = -1;
    uint64_t arguments[6] = {};
};
std::optional<CurrentCall> read_current_call(pid_t tid);

std::optional<std::string> read_small_file(const std::string& path);
// Returns whether the program was started with this environment variable; true if that cannot be
// read.
bool has_variable(pid_t tid, std::string_view name);

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_PROC_H_
