// SPDX-License-Identifier: MIT
//
// Stops the testee and lets it go again: all threads, or one of them.
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
    // Keeps a thread that stands at a guard, or is held, still for as long as `condition` holds, or
    // until the others have had a short while: time in which they had no processor does not count.
    // No verdict hangs on it. A thread that is alone is let go at once: there is no other thread to
    // wait for.
    void hold_while(pid_t tid, const std::function<bool()>& condition,
                    std::chrono::milliseconds at_most = kShortWhile);

  private:
    static constexpr std::chrono::milliseconds kShortWhile{60};

    StageParts& parts_;
    bool is_frozen_ = false;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_HOLDING_H_
