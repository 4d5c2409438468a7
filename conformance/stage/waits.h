// SPDX-License-Identifier: MIT
//
// The waits of a stage. Each returns when the testee has reached a state. It throws Stop if the
// testee ends or hangs before.
#ifndef KMES_CONFORMANCE_STAGE_WAITS_H_
#define KMES_CONFORMANCE_STAGE_WAITS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "conformance/stage/scoped_flag.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance {

struct StageParts;

class Waits {
  public:
    explicit Waits(StageParts& parts) : parts_(parts) {}

    // Waits until every buffer is mapped or refused.
    void mapped();
    // The same, or until the testee exits with a non-zero status, which is correct if an attach
    // fails. Returns false if it has exited so.
    bool mapped_or_exit();
    // Waits until the report contains everything that the testee owes now.
    void delivered();
    void delivered(std::uint32_t cpu);
    // The same, and the testee sleeps by futex on every CPU that has not ended. The events that
    // survive at that time are owed (a checkpoint).
    void asleep();
    void asleep(std::uint32_t cpu);
    // Waits until the testee sleeps on this CPU, but only for a short time, after which no verdict
    // follows. For a case that holds back an event which only it can publish.
    void asleep_or_stuck(std::uint32_t cpu);
    // Waits until every tolerated CPU (level robust) is refused, the testee rests, or the testee
    // has ended. A testee at rest sleeps, or waits with a limit, after it has seen the forged
    // buffers.
    void tolerated_at_rest();
    // Waits until `condition` is true. `what` names it in the message of a failure.
    void until(const std::function<bool()>& condition, const std::string& what);
    // Waits until `condition` is true, or everything of the CPU is delivered and its consumer
    // sleeps, or the CPU has ended. Returns whether the condition became true.
    bool until_or_asleep(const std::function<bool()>& condition, std::uint32_t cpu);
    // Waits for the end of the testee. `what` names it in the message of a failure.
    void exited(const std::string& what);
    // Waits while `pending` is true. While `owing` is true, the testee has to act, and is blamed if
    // it does not.
    void while_pending(const std::function<bool()>& pending, const std::function<bool()>& owing,
                       const std::string& what);
    // Returns the longest time that one wait may take.
    Clock::duration limit() const;
    // Lets the testee run for this time. No verdict depends on it.
    void let_run(std::uint64_t milliseconds);

    // After a full stop, waits once until the threads that slept before sleep again. Every
    // operation of the producer begins with it. A caller that decides by the state of the rings
    // calls it first, because it serves accesses of the testee.
    void let_fall_asleep_again();
    // See Nudges::set_on.
    void set_nudging(bool on);

  private:
    // Stops the case if the testee repeats calls that change nothing.
    void stop_at_endless_calls(const std::string& what);
    friend class ShortenedWaits;

    bool all_mapped() const;
    void mapped_unless(const std::function<bool()>& condition);
    void let_fall_asleep(std::uint32_t cpu);
    void take_checkpoint(std::uint32_t cpu);
    bool nudge_retired();
    bool wake_lone_timed_wait();

    StageParts& parts_;
    bool shortens_ = false;
    std::uint64_t freezes_slept_through_ = 0;  // TracerEffects::freezes at the last such wait
};

// While an object lives, the stage shortens waits of a thread for several CPUs. The thread may
// sleep with a limit (or until a timer signal) on a word of another CPU than the awaited one. Then
// the stage wakes it without an event, as the producer may (5.1.8.2 step 6). Otherwise a search of
// hundreds of steps would take that limit for each step. A thread with an unread event of the CPU
// that it sleeps on keeps its limit.
class ShortenedWaits {
  public:
    explicit ShortenedWaits(Waits& waits) : shortens_(waits.shortens_) {}

  private:
    ScopedFlag shortens_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_WAITS_H_
