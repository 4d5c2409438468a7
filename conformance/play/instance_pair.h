// SPDX-License-Identifier: MIT
//
// Two consumers on one buffer (E12). The suite plays the other consumer on the page, or starts the
// testee's program a second time. Knows no case.
#ifndef KMES_CONFORMANCE_PLAY_INSTANCE_PAIR_H_
#define KMES_CONFORMANCE_PLAY_INSTANCE_PAIR_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "conformance/play/steps.h"
#include "conformance/stage/second_instance.h"
#include "conformance/stage/stage.h"

namespace kmes::conformance {

// Another consumer of CPU 0's buffer clears need_wake (5.1.8.2 step 6), or sets it.
Step other_clears_need_wake();
Step other_sets_need_wake();

// Plays the steps. Attributes a lost wake-up in them to E12, and adds the interleaving to the
// message.
Step with_another_consumer(std::string_view interleaving, const Steps& steps);

// The testee and a second instance of its program on the same buffers. Every wait ends with a
// finding if the second instance ends, or sleeps on an event for good.
class InstancePair {
  public:
    // The testee sleeps; the second instance is started, and sleeps as well.
    explicit InstancePair(Stage& stage);

    // Wakes both. The second instance is stopped at its first access until the testee has drained
    // and sleeps again. It continues to its k-th access, and is stopped there while the next event
    // is published. Returns false if it slept before a k-th access.
    bool hold_second_at(std::uint64_t k);
    // Emits one to four events on CPU 0 while both run.
    void emit_burst();
    // Sends the end event to both, and blames faults of the second instance.
    CaseOutcome finish();

  private:
    bool is_idle() const;
    // Waits until `condition` holds for the second instance. `what` names it in a message.
    void wait(const std::string& what, const std::function<bool()>& condition);
    void record_accesses();

    Stage& stage_;
    SecondInstance second_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_INSTANCE_PAIR_H_
