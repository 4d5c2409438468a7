// SPDX-License-Identifier: MIT
//
// A file that is there whole or not at all.
#include "conformance/report/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "conformance/report/text.h"

namespace kmes::conformance {
namespace {

constexpr mode_t kFileMode = 0666;

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string::npos) return ".";
    return slash == 0 ? "/" : path.substr(0, slash);
}

bool is_folder(const std::string& path) {
    struct stat status;
    return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

}  // namespace

OutputFile::~OutputFile() {
    discard();
}

OutputFile::Status OutputFile::open(const std::string& path) {
    path_ = path;
    if (path.empty() || is_folder(path)) {
        error_ = "the " + what_ + " \"" + printable(path) + "\" is a folder; a file name is right";
        if (path.empty()) error_ = "the name of the " + what_ + " is empty";
        return Status::bad_path;
    }
    const std::string folder = folder_of(path);
    if (!is_folder(folder)) {
        error_ = "the folder \"" + printable(folder) + "\" of the " + what_ + " is not there";
        return Status::bad_path;
    }
    // A file that may not be written is not replaced behind its back.
    if (::access(path.c_str(), F_OK) == 0 && ::access(path.c_str(), W_OK) != 0) {
        fail("cannot write", errno);
        return Status::unwritable;
    }
    if (!make_temporary()) return Status::unwritable;
    // Nothing is left of a run that is killed.
    discard();
    is_open_ = true;
    return Status::ok;
}

bool OutputFile::make_temporary() {
    temporary_path_ = path_ + ".XXXXXX";
    fd_ = ::mkostemp(temporary_path_.data(), O_CLOEXEC);
    if (fd_ >= 0) return true;
    temporary_path_.clear();
    return fail("cannot write", errno);
}

bool OutputFile::write(std::string_view text) {
    if (!is_open_ || !make_temporary()) return false;
    is_open_ = false;
    while (!text.empty()) {
        const ssize_t written = ::write(fd_, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return fail("cannot write", errno);
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    // mkostemp makes a private file; a report has the rights of any other file of this user.
    const mode_t mask = ::umask(0);
    ::umask(mask);
    if (::fchmod(fd_, kFileMode & ~mask) != 0) return fail("cannot write", errno);
    const int closed = ::close(fd_);
    fd_ = -1;
    if (closed != 0) return fail("cannot write", errno);
    return true;
}

bool OutputFile::commit(std::string_view text) {
    if (!write(text)) return false;
    if (::rename(temporary_path_.c_str(), path_.c_str()) != 0) return fail("cannot replace", errno);
    temporary_path_.clear();
    return true;
}

bool OutputFile::commit_new(std::string_view text) {
    if (!write(text)) return false;
    if (::renameat2(AT_FDCWD, temporary_path_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) !=
        0) {
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
