// SPDX-License-Identifier: MIT
//
// Decides whether the testee makes progress, rests, or hangs. A correct consumer is never blamed: a
// hang requires one of two conditions. Either every thread is blocked and nothing pending can wake
// one, or nothing has changed for a long time (times --timeout-scale).
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

// The way in which a testee makes no progress. It repeats waits with a limit, spins, calls
// kmes_attach, repeats futex waits that return at once (EAGAIN), or is blocked for good.
enum class Stall { none, timed_waits, spinning, attaching, refused, for_good };

class Liveness {
  public:
    explicit Liveness(StageParts& parts) : parts_(parts) {}

    // Returns the current way in which the testee makes no progress. Call it in every iteration of
    // a wait. `must_be_sure` is true before a consumer is blamed. A consumer that may be woken from
    // outside of the run (a socket, a lock, setitimer) then gets as much time as one with timers.
    Stall find_stall(bool must_be_sure = false);
    // Returns true if the testee does no work any more, after enough time for the last operation of
    // the producer. It is then blocked for good, in timed waits, or idle (IdleWatch). Call it in
    // every iteration of a wait, because each call is a check of find_stall() and IdleWatch.
    bool check_for_rest();

    // Returns the longest time that one wait may take.
    Clock::duration limit() const;
    // Returns how long the testee may stay in this state before it counts as hung.
    std::chrono::milliseconds time_to_hang(Stall stall) const;

    // -- Reported by the event loop --
    void note_attach(const Attached& event);
    void note_mapped_again();
    // The calls of kmes_attach, and the repeated mappings of buffers, since the last new buffer.
    std::uint64_t attaches_again() const;
    std::uint64_t maps_again() const;

  private:
    StageParts& parts_;
    IdleWatch idle_;
    Repeats attaches_again_;             // epoch: the number of buffers
    Repeats maps_again_;                 // epoch: the number of buffers
    std::uint64_t operations_seen_ = 0;  // operations of the producer at the last call
    std::uint64_t accesses_seen_ = 0;    // recorded accesses at the last check
    TimePoint last_check_;
    TimePoint change_at_check_;  // WorkClock::last_change() at the last check
    unsigned checks_ = 0;
    unsigned quiet_checks_ = 0;
    Clock::duration processor_time_before_{};
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_LIVENESS_H_
