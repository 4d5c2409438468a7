// SPDX-License-Identifier: MIT
//
// Capture files as memfds: regular files for the testee, memory for the runner. Knows no processes.

#include "conformance/tracer/capture.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace kmes::conformance::tracing {
namespace {

constexpr uint64_t kFreeAtBytes = 1u << 20;  // one system call for each MiB is cheap enough
constexpr int kLowestCaptureFd = 10;         // above the numbers that the child sets up

[[noreturn]] void throw_errno(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

CaptureFile::CaptureFile(const char* name) : fd_(memfd_create(name, MFD_CLOEXEC)) {
    if (fd_ < 0) throw_errno("memfd_create for a testee's output");
}

CaptureFile::~CaptureFile() {
    close(fd_);
}

int CaptureFile::open_for_append() const {
    // A separate file description: O_APPEND belongs to the description, and the runner reads by
    // offset.
    const std::string path = "/proc/self/fd/" + std::to_string(fd_);
    const int opened = open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC);
    if (opened < 0) throw_errno("open of a testee's output file");
    const int high = fcntl(opened, F_DUPFD_CLOEXEC, kLowestCaptureFd);
    const int saved_errno = errno;
    close(opened);
    if (high < 0) {
        errno = saved_errno;
        throw_errno("fcntl(F_DUPFD_CLOEXEC) of a testee's output file");
    }
    return high;
}

bool CaptureFile::is(const FileIdentity& identity) const {
    struct stat info{};
    return fstat(fd_, &info) == 0 && identity == FileIdentity{info.st_dev, info.st_ino};
}

uint64_t CaptureFile::unread_bytes() const {
    struct stat info{};
    if (fstat(fd_, &info) != 0) return 0;
    const auto size = static_cast<uint64_t>(info.st_size);
    return size > read_up_to_ ? size - read_up_to_ : 0;
}

std::string CaptureFile::read_new(uint64_t limit_bytes) {
    std::string text(limit_bytes <= kFewBytes ? limit_bytes : std::min(unread_bytes(), limit_bytes),
                     '\0');
    size_t done = 0;
    while (done < text.size()) {
        const ssize_t got = pread(fd_, text.data() + done, text.size() - done,
                                  static_cast<off_t>(read_up_to_ + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;  // the end of the file, or the testee has truncated it
        done += static_cast<size_t>(got);
    }
    text.resize(done);
    read_up_to_ += done;
    free_what_is_read();
    return text;
}

void CaptureFile::skip_new(uint64_t bytes) {
    read_up_to_ += std::min(unread_bytes(), bytes);
    free_what_is_read();
}

void CaptureFile::free_what_is_read() {
    if (read_up_to_ - freed_up_to_ < kFreeAtBytes) return;
    fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(freed_up_to_),
              static_cast<off_t>(read_up_to_ - freed_up_to_));
    freed_up_to_ = read_up_to_;
}

void BoundedText::take(CaptureFile& file) {
    append(file.read_new(half_bytes_ - std::min(half_bytes_, first_.size())));
    if (const uint64_t unread = file.unread_bytes(); unread > half_bytes_) {
        file.skip_new(unread - half_bytes_);
        left_out_bytes_ += last_.size() + (unread - half_bytes_);
        last_.clear();
    }
    append(file.read_new(half_bytes_));
}

void BoundedText::append(const std::string& text) {
    const size_t to_first =
        std::min(text.size(), half_bytes_ - std::min(half_bytes_, first_.size()));
    first_.append(text, 0, to_first);
    last_.append(text, to_first, std::string::npos);
    if (last_.size() > half_bytes_) {
        const size_t surplus = last_.size() - half_bytes_;
        left_out_bytes_ += surplus;
        last_.erase(0, surplus);
    }
}

std::string BoundedText::text() const {
    if (left_out_bytes_ == 0) return first_ + last_;
    return first_ + "\n[... " + std::to_string(left_out_bytes_) + " bytes left out ...]\n" + last_;
}

}  // namespace kmes::conformance::tracing
