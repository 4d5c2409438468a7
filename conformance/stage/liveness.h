// SPDX-License-Identifier: MIT
//
// Whether the testee makes progress, has come to rest, or hangs. A correct consumer is never
// blamed: a state is called a hang only if every thread of the testee is blocked and nothing that
// is on its way can wake it, or if nothing moved for a long time that scales.
#ifndef KMES_CONFORMANCE_STAGE_LIVENESS_H_
#define KMES_CONFORMANCE_STAGE_LIVENESS_H_

#include <chrono>
#include <cstdint>

#include "conformance/stage/idle_watch.h"
#include "conformance/stage/repeats.h"
#include "conformance/tracer/events.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance {

struct StageParts;

// How a testee makes no progress: in waits with a limit, in a spin, in calls of kmes_attach, or
// blocked for good.
enum class Stall { none, timed_waits, spinning, attaching, for_good };

class Liveness {
  public:
    explicit Liveness(StageParts& parts) : parts_(parts) {}

    // `must_be_sure`: before a consumer is blamed. A consumer that may be helped from outside the
    // run (a socket, a lock, setitimer) is then given the time of one with timers.
    Stall find_stall(bool must_be_sure = false);
    // It does nothing any more, or nothing of use, and has seen what it was shown.
    bool is_at_rest();

    // What a wait may take, before it is a verdict.
    Clock::duration limit() const;
    // How long nothing may come before it is called hung in this way.
    std::chrono::milliseconds time_to_hang(Stall stall) const;

    // -- Told by the event loop --
    void note_attach(const Attached& event);
    void note_mapped_again();
    // Calls of kmes_attach, and mappings of buffers that it had mapped before, since a buffer was
    // made.
    std::uint64_t attaches_again() const;
    std::uint64_t maps_again() const;

  private:
    StageParts& parts_;
    IdleWatch idle_;
    Repeats attaches_again_;             // epoch: buffers ever made
    Repeats maps_again_;                 // the same
    std::uint64_t operations_seen_ = 0;  // when the clock was last looked at
    std::uint64_t accesses_seen_ = 0;    // that were recorded, at the last look
    TimePoint last_look_;                // the last look itself
    TimePoint change_at_look_;           // the last change at the last look
    unsigned looks_ = 0;
    unsigned quiet_looks_ = 0;
    Clock::duration processor_time_before_{};
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_LIVENESS_H_
