// SPDX-License-Identifier: MIT
//
// Whether a signal has requested the end of the run, and which one. Knows no run and installs no
// handler.
#ifndef KMES_CONFORMANCE_MODEL_STOP_FLAG_H_
#define KMES_CONFORMANCE_MODEL_STOP_FLAG_H_

#include <atomic>
#include <functional>

namespace kmes::conformance {

// Any thread may load it. A run that sees it set ends early, and reports what it has finished.
class StopFlag {
  public:
    // Requests the end of the run because of this signal. Async-signal-safe. Later signals are
    // ignored.
    void ask(int signal_number) noexcept {
        int none = 0;
        signal_.compare_exchange_strong(none, signal_number);
    }

    bool load() const {
        if (before_each_check) before_each_check();
        return signal() != 0;
    }
    operator bool() const { return load(); }

    // The signal; 0: none.
    int signal() const noexcept { return signal_.load(); }

    // Returns the exit status of a shell for a process that the signal ended: 128 plus its number.
    // Without a signal returns `status`.
    int status_or(int status) const noexcept {
        return signal() == 0 ? status : kSignalledStatus + signal();
    }

    // For tests: called before each load, by the thread that loads.
    std::function<void()> before_each_check;

    static constexpr int kSignalledStatus = 128;

  private:
    std::atomic<int> signal_{0};
    static_assert(std::atomic<int>::is_always_lock_free, "a signal handler stores to it");
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_MODEL_STOP_FLAG_H_
