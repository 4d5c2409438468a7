// SPDX-License-Identifier: GPL-2.0-only
//
// KCOV: which places of the module a thread has been at. Where the kernel has none, is_there says
// so, and everything else does nothing.
#ifndef KMES_KMOD_FUZZ_COVERAGE_H_
#define KMES_KMOD_FUZZ_COVERAGE_H_

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_set>

namespace kmes::fuzz {

// Of one thread, which makes it.
class ThreadCoverage {
  public:
    ThreadCoverage();
    ~ThreadCoverage();
    ThreadCoverage(const ThreadCoverage&) = delete;
    ThreadCoverage& operator=(const ThreadCoverage&) = delete;

    bool is_there() const { return places_ != nullptr; }
    void begin();
    // Places since begin, and their number.
    const std::uint64_t* places() const { return places_ ? places_ + 1 : nullptr; }
    std::size_t count() const;

  private:
    int fd_ = -1;
    std::uint64_t* places_ = nullptr;
};

// Of all threads.
class Seen {
  public:
    // How many of them nobody has been at before.
    std::size_t add(const ThreadCoverage& coverage);
    std::size_t size() const;

  private:
    mutable std::mutex lock_;
    std::unordered_set<std::uint64_t> places_;
};

}  // namespace kmes::fuzz

#endif  // KMES_KMOD_FUZZ_COVERAGE_H_
