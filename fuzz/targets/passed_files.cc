// SPDX-License-Identifier: MIT
//
// See passed_files.h.
#include "fuzz/targets/passed_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "fuzz/fail.h"

namespace kmes::fuzz {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

int open_again(int fd, int flags) {
    return open(("/proc/self/fd/" + std::to_string(fd)).c_str(), flags | O_CLOEXEC);
}

}  // namespace

PassedFiles::~PassedFiles() {
    for (const int fd : fds_) close(fd);
}

int PassedFiles::keep(int fd) {
    expect(fd >= 0, "a descriptor for the target itself can be made");
    fds_.push_back(fd);
    return fd;
}

int PassedFiles::make(Kind kind) {
    int ends[2];

    switch (kind) {
        case Kind::kMemory:
            return make_memory("", kPageBytes, false, 0);
        case Kind::kReadOnly:
            return keep(open_again(make_memory("", kPageBytes, true, F_SEAL_SHRINK), O_RDONLY));
        case Kind::kByPath:
            return keep(open_again(make_memory("", kPageBytes, true, F_SEAL_SHRINK), O_PATH));
        case Kind::kRegular:
            return keep(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
        case Kind::kFolder:
            return keep(open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        case Kind::kNull:
            return keep(open("/dev/null", O_RDWR | O_CLOEXEC));
        case Kind::kPipeRead:
        case Kind::kPipeWrite:
            expect_equal(pipe2(ends, O_CLOEXEC), 0, "the result of pipe2");
            keep(ends[0]);
            keep(ends[1]);
            return ends[kind == Kind::kPipeWrite];
        case Kind::kSocket:
            expect_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0,
                         "the result of socketpair");
            keep(ends[1]);
            return keep(ends[0]);
        case Kind::kEvent:
            return keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        case Kind::kPoll:
        case Kind::kCount:
            break;
    }
    return keep(epoll_create1(EPOLL_CLOEXEC));
}

int PassedFiles::make_memory(std::string_view text, std::uint64_t bytes, bool has_pages,
                             int seals) {
    const int fd = keep(memfd_create("kmes-fuzz", MFD_CLOEXEC | MFD_ALLOW_SEALING));

    // If the limits of this machine do not permit the length, the file is shorter.
    if (!text.empty()) [[maybe_unused]]
        const auto written = pwrite(fd, text.data(), text.size(), 0);
    if (bytes > text.size()) [[maybe_unused]]
        const int error = ftruncate(fd, static_cast<off_t>(bytes));
    if (has_pages && bytes != 0) fallocate(fd, 0, 0, static_cast<off_t>(bytes));
    if (seals) fcntl(fd, F_ADD_SEALS, seals);
    return fd;
}

int PassedFiles::keep_copy(int fd) {
    return keep(fcntl(fd, F_DUPFD_CLOEXEC, 3));
}

void PassedFiles::change(int fd, std::uint64_t how) {
    const auto middle = static_cast<off_t>(kPageBytes / 2);
    const auto page = static_cast<off_t>(kPageBytes);
    [[maybe_unused]] ssize_t result = 0;

    switch (how % 6) {
        case 0:
            result = ftruncate(fd, 0);
            return;
        case 1:
            result = ftruncate(fd, middle);
            return;
        case 2:
            result = fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, page);
            return;
        case 3:
            result = ftruncate(fd, 16 * page);
            return;
        case 4:
            result = pwrite(fd, "\xC2", 1, 0);
            return;
        default:
            fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW);
            return;
    }
}

std::size_t count_open_descriptors() {
    DIR* folder = opendir("/proc/self/fd");
    std::size_t count = 0;

    expect(folder != nullptr, "/proc/self/fd can be read");
    while (readdir(folder)) ++count;
    closedir(folder);
    return count;
}

std::size_t count_mappings(std::string_view name) {
    static char text[1 << 16];
    const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    std::size_t count = 0, kept = 0;

    expect(fd >= 0, "/proc/self/maps can be read");
    for (;;) {
        const ssize_t got = read(fd, text + kept, sizeof(text) - kept);

        if (got <= 0) break;
        const std::string_view all(text, kept + static_cast<std::size_t>(got));
        const std::size_t whole = all.rfind('\n') + 1;

        for (std::size_t at = all.find(name); at < whole; at = all.find(name, at + 1)) ++count;
        kept = all.size() - whole;
        std::memmove(text, text + whole, kept);
    }
    close(fd);
    return count;
}

}  // namespace kmes::fuzz
