// SPDX-License-Identifier: MIT
//
// Parsers for the files of /proc that the tracer reads. Knows no ptrace and no buffers.

#include "conformance/tracer/proc.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cinttypes>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "conformance/tracer/spare_file.h"

namespace kmes::conformance::tracing {
namespace {

std::string proc_path(pid_t tid, const char* name) {
    return "/proc/" + std::to_string(tid) + "/" + name;
}

// Takes fields from the beginning of a line. (sscanf took a tenth of the user time of an
// exploration.)
class Fields {
  public:
    explicit Fields(std::string_view line) : rest_(line) {}

    template <typename Number>
    bool number(Number& value, int base) {
        const auto [end, error] =
            std::from_chars(rest_.data(), rest_.data() + rest_.size(), value, base);
        if (error != std::errc()) return false;
        rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
        return true;
    }
    bool word(std::string_view expected) {
        if (!rest_.starts_with(expected)) return false;
        rest_.remove_prefix(expected.size());
        return true;
    }
    std::string_view characters(size_t count) {
        const std::string_view taken = rest_.substr(0, count);
        rest_.remove_prefix(taken.size());
        return taken;
    }
    void white_space() {
        rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size()));
    }
    std::string_view rest() const { return rest_; }

  private:
    std::string_view rest_;
};

std::optional<MapsEntry> parse_maps_line(std::string_view line) {
    constexpr int kHex = 16;
    constexpr size_t kPermissions = 4;
    MapsEntry entry;
    unsigned major_number = 0;
    unsigned minor_number = 0;
    uint64_t inode = 0;
    Fields fields(line);
    if (!fields.number(entry.start, kHex) || !fields.word("-") || !fields.number(entry.end, kHex) ||
        !fields.word(" "))
        return std::nullopt;
    const std::string_view permissions = fields.characters(kPermissions);
    if (permissions.size() != kPermissions || !fields.word(" ") ||
        !fields.number(entry.offset_bytes, kHex) || !fields.word(" ") ||
        !fields.number(major_number, kHex) || !fields.word(":") ||
        !fields.number(minor_number, kHex) || !fields.word(" ") || !fields.number(inode, 10))
        return std::nullopt;
    fields.white_space();
    entry.readable = permissions[0] == 'r';
    entry.writable = permissions[1] == 'w';
    entry.executable = permissions[2] == 'x';
    entry.shared = permissions[3] == 's';
    entry.file = {makedev(major_number, minor_number), inode};
    entry.path = fields.rest();
    return entry;
}

// Calls `function` with each line, without its newline.
template <typename Function>
void for_each_line(std::string_view text, const Function& function) {
    while (!text.empty()) {
        const size_t end = std::min(text.find('\n'), text.size());
        function(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
}

// Returns nothing if the link no longer exists.
std::string link_text(const std::string& path) {
    char text[PATH_MAX];
    const ssize_t length = readlink(path.c_str(), text, sizeof text);
    return length < 0 ? std::string() : std::string(text, static_cast<size_t>(length));
}

}  // namespace

std::optional<std::string> read_small_file(const std::string& path) {
    const BriefFile file(path, O_RDONLY);
    if (file.fd() < 0) return std::nullopt;
    std::string content;
    char chunk[8192];
    ssize_t got = 0;
    while ((got = read(file.fd(), chunk, sizeof chunk)) > 0)
        content.append(chunk, static_cast<size_t>(got));
    if (got < 0) return std::nullopt;
    return content;
}

bool has_variable(pid_t tid, std::string_view name) {
    const auto content = read_small_file(proc_path(tid, "environ"));
    if (!content) return true;
    // Each variable ends with a zero byte.
    const std::string sought = '\0' + std::string(name) + '=';
    return ('\0' + *content).find(sought) != std::string::npos;
}

std::vector<MapsEntry> read_maps(pid_t tid) {
    std::vector<MapsEntry> entries;
    const auto content = read_small_file(proc_path(tid, "maps"));
    if (!content) return entries;
    for_each_line(*content, [&](std::string_view line) {
        if (auto entry = parse_maps_line(line)) entries.push_back(std::move(*entry));
    });
    return entries;
}

std::optional<FileIdentity> identity_of_fd(pid_t tid, int fd) {
    struct stat info{};
    const std::string path = proc_path(tid, "fd/") + std::to_string(fd);
    if (stat(path.c_str(), &info) != 0) return std::nullopt;
    return FileIdentity{info.st_dev, info.st_ino};
}

std::string program_of(pid_t tid) {
    return link_text(proc_path(tid, "exe"));
}

std::string fd_link(pid_t tid, int fd) {
    return link_text(proc_path(tid, "fd/") + std::to_string(fd));
}

std::vector<int> list_fds(pid_t tid) {
    std::vector<int> fds;
    for (const std::string& name : names_in(proc_path(tid, "fd"))) fds.push_back(stoi(name));
    return fds;
}

std::optional<ThreadStatus> read_status(pid_t tid) {
    const auto content = read_small_file(proc_path(tid, "status"));
    if (!content) return std::nullopt;
    ThreadStatus status;
    for_each_line(*content, [&](std::string_view line) {
        Fields fields(line);
        const size_t colon = std::min(line.find(':'), line.size());
        const std::string_view name = fields.characters(colon);
        fields.word(":");
        fields.white_space();
        uint64_t count = 0;
        if (name == "State" && !fields.rest().empty()) status.state = fields.rest().front();
        if (name == "Tgid") fields.number(status.process, 10);
        if (name == "SigCgt") fields.number(status.caught_signals, 16);
        if (name == "PPid") fields.number(status.parent, 10);
        if (name == "TracerPid") fields.number(status.tracer, 10);
        const bool is_rest = name == "voluntary_ctxt_switches";
        if ((is_rest || name == "nonvoluntary_ctxt_switches") && fields.number(count, 10)) {
            status.context_switches += count;
            if (is_rest) status.rests = count;
        }
    });
    return status;
}

std::vector<pid_t> processes_traced_by(pid_t tracer) {
    std::vector<pid_t> traced;
    for (const std::string& name : names_in("/proc")) {
        pid_t process = 0;
        if (!Fields(name).number(process, 10)) continue;
        const auto status = read_status(process);
        if (status && status->tracer == tracer) traced.push_back(process);
    }
    return traced;
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
