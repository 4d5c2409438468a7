// SPDX-License-Identifier: MIT
//
// Brings the threads of a testee to a stand before a chosen access to a metadata page, and records
// the accesses up to there. Decides only: the caller holds, steps and releases the threads.
#ifndef KMES_CONFORMANCE_STAGE_STAND_H_
#define KMES_CONFORMANCE_STAGE_STAND_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "conformance/tracer/events.h"
#include "conformance/tracer/tracer.h"

namespace kmes::conformance {

class Stand {
  public:
    // An access since begin(); without a step, the access that the testee stands before.
    struct Access {
        GuardHit hit;
        std::uint32_t cpu = 0;
        std::optional<GuardStep> step;
    };

    // From now on accesses are counted, and the testee stands before the `nth` (from 1). A testee
    // that stands already goes on to there: the access that it stands before is the first.
    void begin(std::uint64_t nth);
    // No access is stopped at any more.
    void end();
    bool is_standing() const { return state_ == State::standing; }

    // A thread is before this access. Returns whether it is to be held there. A thread that was
    // released comes to the same access again.
    bool holds(const GuardHit& hit, std::uint32_t cpu);
    // The thread has done the access.
    void note_done(const GuardHit& hit, std::uint32_t cpu, GuardStep step);

    // The accesses that were not taken yet, in order; of a long spin the first.
    std::vector<Access> take_accesses();
    // The threads to be released.
    std::vector<pid_t> take_released();

  private:
    enum class State { nowhere, on_its_way, standing };
    void record(const GuardHit& hit, std::uint32_t cpu, std::optional<GuardStep> step);

    State state_ = State::nowhere;
    std::uint64_t nth_ = 0;
    std::uint64_t done_ = 0;  // accesses since begin()
    std::vector<Access> accesses_;
    std::vector<pid_t> held_;
    std::vector<pid_t> released_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_STAND_H_
