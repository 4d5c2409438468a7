// SPDX-License-Identifier: MIT
//
// Decides which threads of a testee are stopped before a chosen access to a metadata page, and
// records the accesses before it. The caller holds, steps and releases the threads.
#ifndef KMES_CONFORMANCE_STAGE_ACCESS_STOP_H_
#define KMES_CONFORMANCE_STAGE_ACCESS_STOP_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "conformance/tracer/events.h"
#include "conformance/tracer/tracer.h"

namespace kmes::conformance {

class AccessStop {
  public:
    // An access since begin(). Without a step, it is the access that the testee is stopped at.
    struct Access {
        GuardHit hit;
        std::uint32_t cpu = 0;
        std::optional<GuardStep> step;
    };

    // Counts accesses from now on, and stops the testee before access number `nth` (from 1). If it
    // is stopped already, it continues, and the access that it was stopped at counts as the first.
    void begin(std::uint64_t nth);
    // Ends the count, and releases the held threads.
    void end();
    bool is_stopped() const { return state_ == State::stopped; }

    // Call it before an access. Returns whether the caller has to hold the thread. A released
    // thread reaches the same access again.
    bool hold_if_due(const GuardHit& hit, std::uint32_t cpu);
    // Call it after an access.
    void note_done(const GuardHit& hit, std::uint32_t cpu, GuardStep step);

    // Returns the accesses since the last call, in order. A long spin leaves only its first
    // accesses.
    std::vector<Access> take_accesses();
    // Returns the threads that the caller has to release.
    std::vector<pid_t> take_released();

  private:
    enum class State { off, counting, stopped };
    void record(const GuardHit& hit, std::uint32_t cpu, std::optional<GuardStep> step);

    State state_ = State::off;
    std::uint64_t nth_ = 0;
    std::uint64_t done_ = 0;  // accesses since begin()
    std::vector<Access> accesses_;
    std::vector<pid_t> held_;
    std::vector<pid_t> released_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_ACCESS_STOP_H_
