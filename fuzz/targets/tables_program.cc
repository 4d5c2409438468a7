// SPDX-License-Identifier: MIT
//
// See tables_program.h.
#include "fuzz/targets/tables_program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "fuzz/fail.h"

namespace kmes::fuzz {
namespace {

// The descriptors that this process had open before the input: the engine's, or inherited ones.
OpenNumbers& foreign() {
    static OpenNumbers numbers;
    return numbers;
}

}  // namespace

Identity identity_of(int fd) {
    struct stat status{};
    if (::fstat(fd, &status) != 0) return {};
    return {status.st_dev, status.st_ino};
}

void note_foreign_numbers() {
    for (int fd = 0; fd < kFirstReserved; ++fd)
        foreign()[static_cast<std::size_t>(fd)] = fd < 3 || ::fcntl(fd, F_GETFD) >= 0;
}

bool ProgramFiles::is_foreign(int fd) {
    return foreign()[static_cast<std::size_t>(fd)];
}

OpenNumbers open_numbers() {
    OpenNumbers open;
    for (int fd = 3; fd < kFirstReserved; ++fd)
        open[static_cast<std::size_t>(fd)] =
            !foreign()[static_cast<std::size_t>(fd)] && ::fcntl(fd, F_GETFD) >= 0;
    return open;
}

void ProgramFiles::add(int fd, std::uint64_t capacity, bool was_attached) {
    expect(fd >= 3 && fd < kFirstReserved, "a descriptor with a number that is not expected");
    files_.at(static_cast<std::size_t>(fd)) = {true, was_attached, capacity, identity_of(fd)};
}

int ProgramFiles::pick(std::uint64_t from) const {
    for (std::size_t i = 0; i < files_.size(); ++i) {
        const std::size_t at = (from + i) % files_.size();
        if (files_[at].is_open) return static_cast<int>(at);
    }
    return -1;
}

OpenNumbers ProgramFiles::numbers() const {
    OpenNumbers open;
    for (std::size_t i = 0; i < files_.size(); ++i) open[i] = files_[i].is_open;
    return open;
}

void ProgramFiles::close(int fd) {
    if (is_foreign(fd)) return;
    ::close(fd);
    files_.at(static_cast<std::size_t>(fd)) = {};
}

void ProgramFiles::copy_over(int from, int to) {
    if (is_foreign(to) || from == to) return;
    expect(::dup2(from, to) == to, "dup2 fails");
    add(to, at(from).capacity, false);
}

int ProgramFiles::copy(int from) {
    const int fd = ::fcntl(from, F_DUPFD_CLOEXEC, 3);
    if (fd < kFirstReserved) {
        add(fd, at(from).capacity, false);
        return fd;
    }
    ::close(fd);
    return -1;
}

int ProgramFiles::open_file() {
    const int fd = ::memfd_create("program", MFD_CLOEXEC);
    if (fd < kFirstReserved) {
        add(fd, 0, false);
        return fd;
    }
    ::close(fd);
    return -1;
}

void ProgramFiles::close_from(int first) {
    for (int fd = first; fd < kFirstReserved; ++fd) close(fd);
}

bool ProgramFiles::has_attached(const Identity& identity) const {
    for (const File& file : files_)
        if (file.was_attached && file.identity == identity) return true;
    return false;
}

void ProgramFiles::expect_untouched() const {
    for (std::size_t i = 0; i < files_.size(); ++i) {
        if (!files_[i].is_open) continue;
        if (identity_of(static_cast<int>(i)) != files_[i].identity)
            fail("descriptor " + std::to_string(i) +
                 " of the program is closed or another file, and not by the program");
    }
}

}  // namespace kmes::fuzz
