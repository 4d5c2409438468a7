// SPDX-License-Identifier: MIT
//
// The futex waits of the testee on ring words: the threads that sleep now, the words that they
// sleep on, and what the waits before say. Knows the waits only from the events of the tracer, and
// changes nothing.
#ifndef KMES_CONFORMANCE_STAGE_WAIT_LOG_H_
#define KMES_CONFORMANCE_STAGE_WAIT_LOG_H_

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "conformance/stage/repeats.h"
#include "conformance/stage/rings.h"
#include "conformance/stage/served_buffers.h"
#include "conformance/stage/sleep_clock.h"
#include "conformance/stage/work_clock.h"
#include "conformance/tracer/events.h"

namespace kmes::conformance {

class WaitLog {
  public:
    // A wait that goes on, with its last ring word.
    struct Wait {
        FutexWait wait;
        std::uint32_t cpu = 0;
        BufferIndex buffer = 0;
        std::uint64_t begun_operation = 0;  // History::operations() at its entry
    };
    // How a wait has ended.
    struct End {
        bool had_limit = false;
        bool is_interrupted = false;
    };

    WaitLog(const ServedBuffers& buffers, const WorkClock& clock, double timeout_scale)
        : buffers_(buffers), clock_(clock), timeout_scale_(timeout_scale) {}
    // Before anything is noted. `rings` outlives this object.
    void watch(const Rings& rings);

    // -- Told by the stage --
    // Before each event of the tracer.
    void begin_event() { between_waits_ = 0; }
    // A thread enters a wait. Returns whether the wait says nothing of progress: a wait with a
    // limit repeats for ever, and so does one that signals interrupt.
    bool enter(const FutexWait& wait);
    // Then for each word of the wait: the thread sleeps there. Returns the CPU of the word;
    // nothing: the word is in no buffer of this stage.
    std::optional<std::uint32_t> sleep_on(const FutexWait& wait, const FutexWord& word);
    // The wait is over; is_waiting() is still true. Nothing: the wait was on no ring word.
    std::optional<End> leave(const FutexWaitEnd& end);
    // The thread of this wait runs again.
    void forget(const FutexWaitEnd& end);
    // No thread waits any more: the program has ended, or was replaced.
    void forget_all() { waiting_.clear(); }
    // A thread begins an iteration over the buffer of a CPU: after a wait on it, or after its mmap.
    void begin_round(std::uint32_t cpu);

    // -- The threads that sleep now --
    bool is_waiting(pid_t thread) const { return waiting_.contains(thread); }
    // A wait on futex_counter of this buffer of the CPU. nullptr: there is none.
    const Wait* wait_on(std::uint32_t cpu, BufferIndex buffer) const;
    // In a futex wait on the current buffer, with its counter; or, where one thread serves several
    // CPUs, in a wait with a limit on another of them.
    bool asleep(std::uint32_t cpu) const;
    // On the word of this CPU's current buffer; not one whose thread sleeps elsewhere.
    bool sleeps_without_limit(std::uint32_t cpu) const;
    // The same, with a limit of `limit` or more, or without.
    bool sleeps_for(std::uint32_t cpu, Clock::duration limit) const;
    // The sleeper of this CPU has seen everything that the producer did. A wait with a limit proves
    // nothing: its owner may rely on the limit.
    bool proves_idle(std::uint32_t cpu) const;
    // The wait of the only thread that ever slept, if it goes on, and a limit or a timer signal
    // will end it. nullptr otherwise.
    const Wait* lone_timed_wait() const;

    // -- All waits so far --
    // In the order of entry.
    const std::vector<FutexWait>& all() const { return all_; }
    std::uint64_t sleeps(std::uint32_t cpu) const { return sleeps_.at(cpu); }
    // How long the threads have slept on ring words, as far as they asked for it.
    const SleepClock& sleep_clock() const { return sleep_clock_; }
    pid_t last_sleeper(std::uint32_t cpu) const { return last_sleeper_.at(cpu); }
    // History::operations() when the last iteration over this CPU began.
    std::uint64_t round_begun(std::uint32_t cpu) const { return round_begun_.at(cpu); }
    // When this thread's last wait began that had a limit, or came after an interrupted one.
    std::optional<TimePoint> last_nap(pid_t thread) const;
    // The thread stands still because it has just begun a wait with a limit, or let one pass; 0:
    // none does.
    pid_t between_waits() const { return between_waits_; }
    // The kernel refused the last wait of this thread (EAGAIN).
    bool was_refused(pid_t thread) const { return refused_last_.contains(thread); }
    // Waits that the kernel refused since the producer's last operation.
    std::uint64_t refusals() const;

  private:
    std::uint32_t cpu_of(BufferIndex buffer) const { return rings_->history().buffer(buffer).cpu; }
    bool dozes(BufferIndex buffer) const;
    bool dozes_elsewhere(std::uint32_t cpu) const;

    const ServedBuffers& buffers_;
    const WorkClock& clock_;
    double timeout_scale_;
    const Rings* rings_ = nullptr;
    std::map<pid_t, Wait> waiting_;
    std::vector<FutexWait> all_;
    SleepClock sleep_clock_;
    std::vector<std::uint64_t> sleeps_;       // of each CPU
    std::vector<pid_t> last_sleeper_;         // of each CPU
    std::vector<std::uint64_t> round_begun_;  // of each CPU
    std::map<pid_t, TimePoint> last_nap_;
    std::set<pid_t> refused_last_;
    std::set<pid_t> interrupted_;         // threads whose last wait a signal ended
    std::map<pid_t, int> interruptions_;  // how many waits signals ended
    Repeats refused_waits_;               // epoch: the producer's operations
    pid_t between_waits_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_WAIT_LOG_H_
