// SPDX-License-Identifier: GPL-2.0-only
//
// KCOV: the places in the module that a thread has executed. If the kernel has no KCOV,
// is_available returns false, and all other functions do nothing.
#ifndef KMES_KMOD_FUZZ_COVERAGE_H_
#define KMES_KMOD_FUZZ_COVERAGE_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_set>

namespace kmes::fuzz {

// Belongs to the thread that makes it.
class ThreadCoverage {
  public:
    ThreadCoverage();
    ~ThreadCoverage();
    ThreadCoverage(const ThreadCoverage&) = delete;
    ThreadCoverage& operator=(const ThreadCoverage&) = delete;

    bool is_available() const { return places_ != nullptr; }
    void begin();
    // The places that were executed since begin(), and their number.
    const std::uint64_t* places() const { return places_ ? places_ + 1 : nullptr; }
    std::size_t count() const;

  private:
    int fd_ = -1;
    std::uint64_t* places_ = nullptr;
};

// The places of all threads.
class Seen {
  public:
    // Adds places, and returns how many of them are new.
    std::size_t add(const ThreadCoverage& coverage);
    std::size_t size() const;

  private:
    mutable std::mutex lock_;
    std::unordered_set<std::uint64_t> places_;
};

}  // namespace kmes::fuzz

#endif  // KMES_KMOD_FUZZ_COVERAGE_H_
