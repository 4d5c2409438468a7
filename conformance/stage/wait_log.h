// SPDX-License-Identifier: MIT
//
// The futex waits of the testee on ring words: the current waits with their threads and words, and
// all earlier waits. Knows the waits only from the events of the tracer, and changes nothing.
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
    // A current wait, with its last ring word.
    struct Wait {
        FutexWait wait;
        std::uint32_t cpu = 0;
        BufferIndex buffer = 0;
        std::uint64_t begun_operation = 0;  // History::operations() at its entry
    };
    // The end of a wait.
    struct End {
        bool had_limit = false;
        bool is_interrupted = false;
    };

    WaitLog(const ServedBuffers& buffers, const WorkClock& clock, double timeout_scale)
        : buffers_(buffers), clock_(clock), timeout_scale_(timeout_scale) {}
    // To be called first. `rings` outlives this object.
    void watch(const Rings& rings);

    // -- Reported by the stage --
    // To be called before each event of the tracer.
    void begin_event() { between_waits_ = 0; }
    // A thread enters a wait. Returns whether the wait is a nap, which shows no progress: it has a
    // limit, or it follows an interrupted wait. An idle thread repeats both for ever.
    bool enter(const FutexWait& wait);
    // To be called after enter() for each word of the wait: the thread sleeps on it. Returns the
    // CPU of the word. Nothing: no buffer of this stage has the word.
    std::optional<std::uint32_t> sleep_on(const FutexWait& wait, const FutexWord& word);
    // The wait has ended; is_waiting() remains true until forget(). Nothing: the wait was on no
    // ring word.
    std::optional<End> leave(const FutexWaitEnd& end);
    // The thread of this wait runs again.
    void forget(const FutexWaitEnd& end);
    // No thread waits any more: the program has ended or was replaced.
    void forget_all() { waiting_.clear(); }
    // A thread begins an iteration over the buffer of a CPU: after a wait on it, or after its mmap.
    void begin_iteration(std::uint32_t cpu);

    // -- The threads that sleep now --
    bool is_waiting(pid_t thread) const { return waiting_.contains(thread); }
    // Returns a wait on futex_counter of this buffer of the CPU; nullptr: there is none.
    const Wait* wait_on(std::uint32_t cpu, BufferIndex buffer) const;
    // True if a thread waits on the current buffer of the CPU with the current counter. If one
    // thread serves several CPUs, a wait with a limit on another of them counts too.
    bool asleep(std::uint32_t cpu) const;
    // True if a thread waits on the current buffer of this CPU itself, without a limit.
    bool sleeps_without_limit(std::uint32_t cpu) const;
    // True if a thread waits on that buffer, by a shared futex, without a limit or with one of at
    // least `limit`.
    bool sleeps_for(std::uint32_t cpu, Clock::duration limit) const;
    // True if the sleeper of this CPU has seen every operation of the producer. A wait with a limit
    // proves nothing: the thread may rely on the limit.
    bool proves_idle(std::uint32_t cpu) const;
    // Returns the wait of the only thread that ever slept, if a limit or a timer signal will end
    // it. Returns nullptr if another thread has slept too, or if the thread is awake.
    const Wait* lone_timed_wait() const;

    // -- All waits so far --
    // All waits, in the order of entry.
    const std::vector<FutexWait>& all() const { return all_; }
    std::uint64_t sleeps(std::uint32_t cpu) const { return sleeps_.at(cpu); }
    // Measures how long the threads have slept on ring words.
    const SleepClock& sleep_clock() const { return sleep_clock_; }
    pid_t last_sleeper(std::uint32_t cpu) const { return last_sleeper_.at(cpu); }
    // History::operations() when the last iteration over this CPU began.
    std::uint64_t iteration_begun(std::uint32_t cpu) const { return iteration_begun_.at(cpu); }
    // Returns the time at which this thread's last nap began (see enter()).
    std::optional<TimePoint> last_nap(pid_t thread) const;
    // Returns the thread that is stopped at the begin of a nap, or at the end of a wait with EINTR
    // or ETIMEDOUT; 0: none.
    pid_t between_waits() const { return between_waits_; }
    // The kernel refused the last wait of this thread (EAGAIN).
    bool was_refused(pid_t thread) const { return refused_last_.contains(thread); }
    // Returns the number of waits that the kernel refused since the producer's last operation.
    std::uint64_t refused_waits() const;

  private:
    std::uint32_t cpu_of(BufferIndex buffer) const { return rings_->history().buffer(buffer).cpu; }
    bool is_in_timed_wait(BufferIndex buffer) const;
    bool is_in_timed_wait_elsewhere(std::uint32_t cpu) const;

    const ServedBuffers& buffers_;
    const WorkClock& clock_;
    double timeout_scale_;
    const Rings* rings_ = nullptr;
    std::map<pid_t, Wait> waiting_;
    std::vector<FutexWait> all_;
    SleepClock sleep_clock_;
    std::vector<std::uint64_t> sleeps_;           // by CPU
    std::vector<pid_t> last_sleeper_;             // by CPU
    std::vector<std::uint64_t> iteration_begun_;  // by CPU
    std::map<pid_t, TimePoint> last_nap_;
    std::set<pid_t> refused_last_;
    std::set<pid_t> interrupted_;         // threads whose last wait a signal ended
    std::map<pid_t, int> interruptions_;  // the number of waits that signals ended
    Repeats refused_waits_;               // epoch: the producer's operations
    pid_t between_waits_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_WAIT_LOG_H_
