// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/fuzz/coverage.h"

#include <fcntl.h>
#include <linux/kcov.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>

namespace kmes::fuzz {
namespace {

constexpr std::size_t kMostPlaces = 256 << 10;  // of one input
constexpr char kFile[] = "/sys/kernel/debug/kcov";

}  // namespace

ThreadCoverage::ThreadCoverage() : fd_(open(kFile, O_RDWR | O_CLOEXEC)) {
    if (fd_ < 0 || ioctl(fd_, KCOV_INIT_TRACE, kMostPlaces)) return;
    void* const memory = mmap(nullptr, kMostPlaces * sizeof(std::uint64_t), PROT_READ | PROT_WRITE,
                              MAP_SHARED, fd_, 0);
    if (memory == MAP_FAILED) return;
    if (ioctl(fd_, KCOV_ENABLE, KCOV_TRACE_PC)) {
        std::perror("KCOV_ENABLE");
        munmap(memory, kMostPlaces * sizeof(std::uint64_t));
        return;
    }
    places_ = static_cast<std::uint64_t*>(memory);
}

ThreadCoverage::~ThreadCoverage() {
    if (places_) {
        ioctl(fd_, KCOV_DISABLE, 0);
        munmap(places_, kMostPlaces * sizeof(std::uint64_t));
    }
    if (fd_ >= 0) close(fd_);
}

// The kernel writes only in system calls of this thread, so relaxed accesses suffice.
void ThreadCoverage::begin() {
    if (places_) std::atomic_ref(places_[0]).store(0, std::memory_order_relaxed);
}

std::size_t ThreadCoverage::count() const {
    if (!places_) return 0;
    return std::min<std::size_t>(std::atomic_ref(places_[0]).load(std::memory_order_relaxed),
                                 kMostPlaces - 1);
}

std::size_t Seen::add(const ThreadCoverage& coverage) {
    const std::lock_guard guard(lock_);
    const std::size_t before = places_.size();
    places_.insert(coverage.places(), coverage.places() + coverage.count());
    return places_.size() - before;
}

std::size_t Seen::size() const {
    const std::lock_guard guard(lock_);
    return places_.size();
}

}  // namespace kmes::fuzz
