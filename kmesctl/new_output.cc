// SPDX-License-Identifier: MIT
//
// See new_output.h.
#include "kmesctl/new_output.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <system_error>
#include <utility>

#include "kmesctl/command.h"

namespace kmes::kmesctl {
namespace {

// Without the slashes at the end: the name of a folder may have them.
std::string without_slashes(std::string path) {
    while (path.size() > 1 && path.back() == '/') path.pop_back();
    return path;
}

std::string template_beside(const std::string& path) {
    return path.substr(0, path.find_last_of('/') + 1) + ".kmesctl-XXXXXX";
}

// Returns why nothing new can have this name, as errno; 0: it can. A link that leads nowhere is in
// the way, too.
int taken(const std::string& path) {
    struct stat status = {};
    if (lstat(path.c_str(), &status) == 0) return EEXIST;
    return errno == ENOENT ? 0 : errno;
}

}  // namespace

NewOutput::NewOutput(std::string path, Kind kind)
    : path_(kind == Kind::folder ? without_slashes(std::move(path)) : std::move(path)),
      temporary_path_(template_beside(path_)) {
    if (path_.ends_with('/')) refuse(EISDIR);
    if (const int error = taken(path_); error != 0) refuse(error);
    if (kind == Kind::folder) {
        if (mkdtemp(temporary_path_.data()) == nullptr) refuse(errno);
    } else {
        fd_ = mkostemp(temporary_path_.data(), O_CLOEXEC);
        if (fd_ < 0) refuse(errno);
    }
}

NewOutput::~NewOutput() {
    if (fd_ >= 0) close(fd_);
    if (is_committed_) return;
    if (fd_ >= 0) {
        unlink(temporary_path_.c_str());
        return;
    }
    try {
        std::error_code ignored;
        std::filesystem::remove_all(temporary_path_, ignored);
    } catch (const std::exception&) {  // no memory
    }
}

void NewOutput::refuse(int error) const {
    throw Failure(kExitFailed, fmt::format("cannot create {}: {}", path_, std::strerror(error)));
}

int NewOutput::rename_to_new() const {
    if (renameat2(AT_FDCWD, temporary_path_.c_str(), AT_FDCWD, path_.c_str(), RENAME_NOREPLACE) ==
        0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS) return errno;
    // This file system cannot check and rename in one step.
    if (const int error = taken(path_); error != 0) return error;
    return rename(temporary_path_.c_str(), path_.c_str()) == 0 ? 0 : errno;
}

void NewOutput::commit() {
    if (const int error = rename_to_new(); error != 0) refuse(error);
    is_committed_ = true;
}

}  // namespace kmes::kmesctl
