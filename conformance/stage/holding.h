// SPDX-License-Identifier: MIT
//
// Stops and resumes the testee: all threads, or one of them.
#ifndef KMES_CONFORMANCE_STAGE_HOLDING_H_
#define KMES_CONFORMANCE_STAGE_HOLDING_H_

#include <sys/types.h>

#include <chrono>
#include <functional>

namespace kmes::conformance {

struct StageParts;

class Holding {
  public:
    explicit Holding(StageParts& parts) : parts_(parts) {}

    void freeze();
    void thaw();
    bool is_frozen() const { return is_frozen_; }
    // Keeps one thread stopped that is at a guard or held. Resumes it when `condition` is false, or
    // after the other threads have had the time `at_most`. Time in which they had no processor does
    // not count. No verdict depends on this time. If the testee has only this thread, it is resumed
    // at once.
    void hold_while(pid_t tid, const std::function<bool()>& condition,
                    std::chrono::milliseconds at_most = kShortWhile);

  private:
    static constexpr std::chrono::milliseconds kShortWhile{60};

    StageParts& parts_;
    bool is_frozen_ = false;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_HOLDING_H_
