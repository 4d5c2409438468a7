// SPDX-License-Identifier: MIT
//
// See spare_file.h.

#include "conformance/tracer/spare_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>
#include <system_error>

namespace kmes::conformance::tracing {
namespace {

std::mutex spare_mutex;
int spare_fd = -1;  // under spare_mutex

// Under spare_mutex.
void open_spare() {
    if (spare_fd < 0) spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

}  // namespace

void keep_spare_file() {
    const std::lock_guard lock(spare_mutex);
    open_spare();
    if (spare_fd < 0)
        throw std::system_error(errno, std::generic_category(), "a descriptor for /proc");
}

BriefFile::BriefFile(const std::string& path, int flags)
    : fd_(open(path.c_str(), flags | O_CLOEXEC)) {
    if (fd_ >= 0 || errno != EMFILE) return;
    spare_mutex.lock();
    has_spare_ = true;
    if (spare_fd >= 0) close(spare_fd);
    spare_fd = -1;
    fd_ = open(path.c_str(), flags | O_CLOEXEC);
}

BriefFile::~BriefFile() {
    if (fd_ >= 0) close(fd_);
    if (!has_spare_) return;
    open_spare();
    spare_mutex.unlock();
}

std::vector<std::string> names_in(const std::string& folder) {
    std::vector<std::string> names;
    const BriefFile file(folder, O_RDONLY | O_DIRECTORY);
    if (file.fd() < 0) return names;
    alignas(dirent64) char entries[4096];
    ssize_t got = 0;
    while ((got = getdents64(file.fd(), entries, sizeof entries)) > 0) {
        for (ssize_t at = 0; at < got;) {
            const auto* entry = reinterpret_cast<const dirent64*>(entries + at);
            if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
            at += entry->d_reclen;
        }
    }
    return names;
}

}  // namespace kmes::conformance::tracing
