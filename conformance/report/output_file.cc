// SPDX-License-Identifier: MIT
//
// See output_file.h.
#include "conformance/report/output_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "conformance/report/descriptor_stream.h"
#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

constexpr mode_t kFileMode = 0666;
constexpr mode_t kAllModeBits = 07777;
// The limit of the kernel for links in one path.
constexpr int kLinksAtMost = 40;
constexpr int kWaitForReaderMs = 20;
constexpr int kWaitsForReader = 250;

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

std::string name_of(const std::string& path) {
    return path.substr(path.rfind('/') + 1);
}

bool is_folder(const std::string& path) {
    struct stat status{};
    return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool is_in_procfs(const std::string& path) {
    struct statfs system{};
    return ::statfs(folder_of(path).c_str(), &system) == 0 && system.f_type == PROC_SUPER_MAGIC;
}

// Returns the target of a symbolic link as it is stored; nothing if the path is no link.
std::optional<std::string> link_target(const std::string& path) {
    std::array<char, PATH_MAX> text;
    const ssize_t length = ::readlink(path.c_str(), text.data(), text.size());
    if (length < 0) return std::nullopt;
    const std::string target(text.data(), static_cast<std::size_t>(length));
    return target.starts_with('/') ? target : folder_of(path) + "/" + target;
}

// Resolves the links. Stops at a link of procfs, which only the kernel can follow.
std::string without_links(std::string path) {
    for (int i = 0; i < kLinksAtMost && !is_in_procfs(path); ++i) {
        const auto next = link_target(path);
        if (!next) break;
        path = *next;
    }
    return path;
}

// Returns the number N if the path is /proc/self/fd/N in one of its spellings.
std::optional<int> own_descriptor(const std::string& path) {
    std::array<char, PATH_MAX> real;
    if (::realpath(folder_of(path).c_str(), real.data()) == nullptr) return std::nullopt;
    const std::string own = "/proc/" + std::to_string(::getpid()) + "/";
    const std::string folder = real.data();
    if (!folder.starts_with(own) || !folder.ends_with("/fd")) return std::nullopt;
    const std::string name = name_of(path);
    if (name.empty() || name.find_first_not_of("0123456789") != std::string::npos)
        return std::nullopt;
    return std::atoi(name.c_str());
}

// Returns a writable duplicate of a descriptor of this process, or -1 and errno.
int duplicate(int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags >= 0 && (flags & O_ACCMODE) == O_RDONLY) {
        errno = EBADF;
        return -1;
    }
    return ::fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

// Opens for writing. The reader of a FIFO may be about to open it: waits for it in steps, with a
// limit. A blocking open would miss a signal that arrives just before it.
int open_for_writing(const std::string& path, bool is_fifo, const StopFlag* stop) {
    const int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY;
    if (!is_fifo) return ::open(path.c_str(), flags);
    for (int waits = 0;; ++waits) {
        const int fd = ::open(path.c_str(), flags | O_NONBLOCK);
        if (fd >= 0) {
            ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) & ~O_NONBLOCK);
            return fd;
        }
        if (errno != ENXIO || waits == kWaitsForReader) return -1;
        if (stop != nullptr && *stop) {
            errno = EINTR;
            return -1;
        }
        ::poll(nullptr, 0, kWaitForReaderMs);
    }
}

}  // namespace

std::optional<std::string> replaced_file(const std::string& path) {
    const std::string target = without_links(path);
    if (name_of(target).empty() || link_target(target)) return std::nullopt;
    struct stat status{};
    if (::stat(target.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) return std::nullopt;
    std::array<char, PATH_MAX> folder;
    if (::realpath(folder_of(target).c_str(), folder.data()) == nullptr) return std::nullopt;
    return std::string(folder.data()) + "/" + name_of(target);
}

OutputFile::~OutputFile() {
    discard();
}

OutputFile::Status OutputFile::refuse(const std::string& why) {
    error_ = why;
    return Status::bad_path;
}

OutputFile::Status OutputFile::open(const std::string& path, const StopFlag* stop) {
    path_ = target_ = path;
    if (path.empty()) return refuse("the name of the " + what_ + " is empty");
    target_ = without_links(path);
    struct stat status{};
    if (::stat(target_.c_str(), &status) == 0) {
        if (S_ISDIR(status.st_mode)) {
            return refuse("the " + what_ + " \"" + printable(path) +
                          "\" is a folder; expected a file name");
        }
        struct stat itself{};
        const bool is_link = ::lstat(target_.c_str(), &itself) == 0 && S_ISLNK(itself.st_mode);
        if (is_link || !S_ISREG(status.st_mode)) return open_in_place(status.st_mode, stop);
        // A file without write permission must not be replaced.
        if (::access(target_.c_str(), W_OK) != 0) {
            fail("cannot write", errno);
            return Status::unwritable;
        }
    } else if (errno == ELOOP) {
        return refuse("the " + what_ + " \"" + printable(path) +
                      "\" is a loop of symbolic links; expected a file name");
    } else if (target_.ends_with('/')) {
        return refuse("the " + what_ + " \"" + printable(path) +
                      "\" is a folder; expected a file name");
    }
    return try_folder();
}

OutputFile::Status OutputFile::open_new(const std::string& path) {
    path_ = target_ = path;
    return try_folder();
}

OutputFile::Status OutputFile::open_in_place(mode_t mode, const StopFlag* stop) {
    const std::optional<int> own = own_descriptor(target_);
    if (!own && S_ISSOCK(mode)) {
        return refuse("the " + what_ + " \"" + printable(path_) +
                      "\" is a socket; expected a file, a FIFO or a device");
    }
    fd_ = own ? duplicate(*own) : open_for_writing(target_, S_ISFIFO(mode), stop);
    if (fd_ < 0) {
        const bool has_no_reader = errno == ENXIO && S_ISFIFO(mode);
        fail("cannot write", errno);
        if (has_no_reader)
            error_ = "no process reads the FIFO \"" + printable(path_) + "\" of the " + what_;
        return Status::unwritable;
    }
    in_place_ = is_open_ = true;
    return Status::ok;
}

OutputFile::Status OutputFile::try_folder() {
    const std::string folder = folder_of(target_);
    if (!is_folder(folder)) {
        return refuse("the folder \"" + printable(folder) + "\" of the " + what_ + " is not there");
    }
    if (!make_temporary()) return Status::unwritable;
    // A killed run must leave no file.
    discard();
    is_open_ = true;
    return Status::ok;
}

bool OutputFile::make_temporary() {
    temporary_path_ = target_ + ".XXXXXX";
    fd_ = ::mkostemp(temporary_path_.data(), O_CLOEXEC);
    if (fd_ >= 0) return true;
    temporary_path_.clear();
    return fail("cannot write", errno);
}

bool OutputFile::write_temporary(std::string_view text) {
    if (!make_temporary()) return false;
    if (const int error = write_all(fd_, text); error != 0) return fail("cannot write", error);
    return true;
}

bool OutputFile::take_over_rights() {
    struct stat old_file{};
    if (::stat(target_.c_str(), &old_file) != 0) {
        // mkostemp makes a private file, but a report has the permissions of any other file of this
        // user.
        const mode_t mask = ::umask(0);
        ::umask(mask);
        return ::fchmod(fd_, kFileMode & ~mask) == 0;
    }
    struct stat own{};
    if (::fstat(fd_, &own) != 0) return false;
    const bool has_owner = own.st_uid == old_file.st_uid && own.st_gid == old_file.st_gid;
    if (!has_owner && ::fchown(fd_, old_file.st_uid, old_file.st_gid) != 0) return false;
    return ::fchmod(fd_, old_file.st_mode & kAllModeBits) == 0;
}

bool OutputFile::write_over(std::string_view text) {
    discard();
    fd_ = ::open(target_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd_ < 0) return fail("cannot write", errno);
    const int error = write_all(fd_, text);
    const int closed = ::close(fd_);
    fd_ = -1;
    if (error != 0 || closed != 0) return fail("cannot write", error != 0 ? error : errno);
    return true;
}

bool OutputFile::commit(std::string_view text) {
    if (!is_open_) return false;
    is_open_ = false;
    if (in_place_) {
        const int error = write_all(fd_, text);
        const int closed = ::close(fd_);
        fd_ = -1;
        if (error != 0 || closed != 0) return fail("cannot write", error != 0 ? error : errno);
        return true;
    }
    if (!write_temporary(text)) return false;
    struct stat there{};
    const bool is_there = ::lstat(target_.c_str(), &there) == 0;
    // A file that appeared there after open() is not replaced either.
    if (is_there && !S_ISREG(there.st_mode))
        return fail("cannot replace", S_ISDIR(there.st_mode) ? EISDIR : EEXIST);
    if (!take_over_rights()) return is_there ? write_over(text) : fail("cannot write", errno);
    const int closed = ::close(fd_);
    fd_ = -1;
    if (closed != 0) return fail("cannot write", errno);
    if (::rename(temporary_path_.c_str(), target_.c_str()) != 0) {
        // A mount point cannot be replaced.
        return errno == EBUSY ? write_over(text) : fail("cannot replace", errno);
    }
    temporary_path_.clear();
    return true;
}

bool OutputFile::commit_new(std::string_view text) {
    if (!is_open_) return false;
    is_open_ = false;
    if (!write_temporary(text)) return false;
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(fd_, kFileMode & ~mask) != 0) return fail("cannot write", errno);
    const int closed = ::close(fd_);
    fd_ = -1;
    if (closed != 0) return fail("cannot write", errno);
    if (::renameat2(AT_FDCWD, temporary_path_.c_str(), AT_FDCWD, target_.c_str(),
                    RENAME_NOREPLACE) != 0) {
        taken_ = errno == EEXIST;
        return fail("cannot write", errno);
    }
    temporary_path_.clear();
    return true;
}

bool OutputFile::fail(const std::string& what, int error_number) {
    error_ =
        what + " the " + what_ + " \"" + printable(path_) + "\": " + std::strerror(error_number);
    discard();
    return false;
}

void OutputFile::discard() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
    temporary_path_.clear();
}

}  // namespace kmes::conformance
