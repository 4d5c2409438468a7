// SPDX-License-Identifier: MIT
//
// The waits of a stage: each returns when the testee has reached a state, and throws Stop if the
// testee ends, or hangs, before.
#ifndef KMES_CONFORMANCE_STAGE_WAITS_H_
#define KMES_CONFORMANCE_STAGE_WAITS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "conformance/stage/raised.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance {

struct StageParts;

class Waits {
  public:
    explicit Waits(StageParts& parts) : parts_(parts) {}

    // Every buffer is mapped, or refused.
    void mapped();
    // The same, or the testee has given up with a non-zero status (right where an attach fails).
    // False: it has.
    bool mapped_or_exit();
    // Everything that it owes now is in its report.
    void delivered();
    void delivered(std::uint32_t cpu);
    // The same, and it sleeps by futex on every CPU that has not ended; what survives then is owed
    // (a checkpoint).
    void asleep();
    void asleep(std::uint32_t cpu);
    // The same, but nothing is said if it neither sleeps nor delivers for a short while: for a case
    // in which an event is on its way that only the case can publish.
    void asleep_or_stuck(std::uint32_t cpu);
    // Every CPU that is tolerated (level robust) is refused, or its consumer has come to rest with
    // what it was shown: it sleeps, or waits with a limit.
    void tolerated_at_rest();
    // Until `condition`; `what` names it in the message when the limit is passed.
    void until(const std::function<bool()>& condition, const std::string& what);
    // Until `condition`, or everything is delivered and asleep, or the CPU has ended. True: the
    // condition came.
    bool until_or_asleep(const std::function<bool()>& condition, std::uint32_t cpu);
    // Its end; `what` names it in the message when the limit is passed.
    void exited(const std::string& what);
    // While `pending`. `owing`: the testee has to act, and is blamed if it does not.
    void while_pending(const std::function<bool()>& pending, const std::function<bool()>& owing,
                       const std::string& what);
    // What a wait may take, before it is a verdict.
    Clock::duration limit() const;
    // Gives the testee time to run, for a stretch that is not a verdict.
    void let_run(std::uint64_t milliseconds);

    // After a full stop, waits once until the threads that slept before sleep again. Every
    // operation of the producer begins with it. A caller that decides by the state of the rings
    // calls it before, since it serves accesses of the testee.
    void let_fall_asleep_again();
    // See Nudges::set_on.
    void set_nudging(bool on);

  private:
    friend class ShortenedWaits;

    bool all_mapped() const;
    void mapped_unless(const std::function<bool()>& condition);
    void let_fall_asleep(std::uint32_t cpu);
    void take_checkpoint(std::uint32_t cpu);
    bool nudge_retired();
    bool wake_who_waits_elsewhere();

    StageParts& parts_;
    bool shortens_ = false;
    std::uint64_t freezes_slept_through_ = 0;  // Tracer::freezes() after which all sleep again
};

// While an object lives, the stage shortens waits of a thread for several CPUs. If the thread
// sleeps with a limit (or until a timer signal) on a word of another CPU than the awaited one, the
// stage wakes it without an event, as the producer may (5.1.8.2 step 6). A walk of hundreds of
// steps does not take that limit for each. A thread with an unread event of the CPU that it sleeps
// on keeps its limit.
class ShortenedWaits {
  public:
    explicit ShortenedWaits(Waits& waits) : shortens_(waits.shortens_) {}

  private:
    Raised shortens_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_WAITS_H_
