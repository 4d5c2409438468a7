// SPDX-License-Identifier: MIT
//
// Counts how often the testee repeats an action without a change that could be its reason. Knows
// neither the action nor the change: the caller numbers the changes.
#ifndef KMES_CONFORMANCE_STAGE_REPEATS_H_
#define KMES_CONFORMANCE_STAGE_REPEATS_H_

#include <cstdint>

namespace kmes::conformance {

class Repeats {
  public:
    // More repeats than any correct consumer makes.
    static constexpr std::uint64_t kTooMany = 1000;

    // Counts one action. `epoch` is the number of changes so far.
    void note(std::uint64_t epoch) {
        count_ = count(epoch) + 1;
        epoch_ = epoch;
    }
    // Returns the number of actions since the last change.
    std::uint64_t count(std::uint64_t epoch) const { return epoch == epoch_ ? count_ : 0; }

  private:
    std::uint64_t count_ = 0;
    std::uint64_t epoch_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_REPEATS_H_
