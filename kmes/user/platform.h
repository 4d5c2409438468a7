// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// The platform of one producer CPU in userspace (kmes/platform.h): its clock, its critical section
// in one of two modes, and its wakes. Knows buffers only to wake who sleeps on them.
#ifndef KMES_USER_PLATFORM_H
#define KMES_USER_PLATFORM_H

#include <atomic>
#include <cstdint>

#include "kmes/platform.h"
#include "kmes/user/counter_clock.h"
#include "kmes/user/memory.h"
#include "kmes/user/owner_lock.h"

namespace kmes {

// How the emitters of one CPU keep out of each other's way.
enum class EmitterMode {
    // One lock a CPU: any thread may emit on any CPU at any time. A signal handler that emits in
    // the middle of an emission of its own thread is turned away, counted, and its gap shows (E16).
    // A handler that interrupts an emission must not emit on another CPU than that one: it would
    // wait there with a lock in hand, and two such handlers for each other.
    kLocked,
    // No lock: the caller promises that calls on one CPU never overlap, from different threads;
    // attach excepted. That includes resize, retire and statistics, which touch every CPU. A signal
    // handler on the emitting thread is turned away as above.
    kSingle,
};

// A clock that can be injected: ns, and a context that is handed to it.
struct Clock {
    // NULL: CLOCK_REALTIME, from the counter where that is usable (counter_clock.h).
    uint64_t (*now_ns)(void* context) = nullptr;
    void* context = nullptr;
};

// Clears need_wake where nobody can be asleep any more (E12), and moves the counter for whoever has
// set it all the same. From inside the critical section of the buffer's CPU. True: it was set, and
// kmes_futex_wake_all() is due.
//
// CLEAR_WAKE comes before COUNTER. A consumer that nobody knew of, and that took the new counter,
// sets its flag after it was cleared; one that took the old counter finds another value in its
// futex_wait, or is woken. So it asks again. (One that takes the counter after it has set the flag
// is not covered.)
bool clear_need_wake(struct kmes_buffer* buffer);

// Stays where it is made; the core keeps the address of platform().
class CpuPlatform {
  public:
    CpuPlatform(EmitterMode mode, Clock clock);
    CpuPlatform(const CpuPlatform&) = delete;
    CpuPlatform& operator=(const CpuPlatform&) = delete;

    struct kmes_platform* platform() { return &platform_; }

    // Before the first event: whose critical section this is. Without it, need_wake is never
    // cleared.
    void set_cpu(const struct kmes_cpu* cpu) { cpu_ = cpu; }

    // kLocked: this thread is in the critical section now. kSingle: never known, so false.
    bool is_held_here() const { return lock_.is_held_here(); }

    // Runs `work` with every other emitter of the CPU kept out. In it, calls of the core may enter
    // the critical section. The caller is not inside it, and has its signals blocked.
    template <typename Work>
    void with_others_out(Work work) {
        if (mode_ == EmitterMode::kLocked) lock_.lock();
        run_inside(work);
    }

    // The same, unless an emitter stays inside for longer than an emission takes, as one with an
    // open reservation does. False: `work` was not run.
    template <typename Work>
    bool try_with_others_out(Work work) {
        if (mode_ == EmitterMode::kLocked && !lock_.try_lock()) return false;
        run_inside(work);
        return true;
    }

    // Between two sections of one thread: an emitter that waits now is let in first, unless it does
    // not come in 2 ms.
    void let_emitters_in() { lock_.let_others_in(2'000'000); }

    // Such an emitter is inside now.
    bool is_held_long() const { return mode_ == EmitterMode::kLocked && lock_.is_held_long(); }

    // Whether somebody may be asleep of whose end the producer hears, or of whom it knows nothing.
    // Where nobody is, a wake that wakes nobody clears need_wake: whoever has set it was killed in
    // its sleep, without a lease. kLocked alone.
    void set_attended(bool is_attended) {
        is_attended_.store(is_attended, std::memory_order_relaxed);
    }

    // From inside with_others_out: nobody gets into the critical section from now on.
    void close() { __atomic_store_n(&platform_.is_closed, 1, __ATOMIC_RELAXED); }
    bool is_closed() const { return __atomic_load_n(&platform_.is_closed, __ATOMIC_RELAXED); }

  private:
    template <typename Work>
    void run_inside(Work work) {
        passes_ = true;
        work();
        passes_ = false;
        if (mode_ == EmitterMode::kLocked) lock_.unlock();
    }

    static __u64 counter_ns(void* context);
    static __u64 injected_ns(void* context);
    static bool enter(void* context);
    static void exit(void* context);
    static void issue_wakes(void* context);
    BufferMemory* exchange_owed(BufferMemory* next);
    void wake(BufferMemory* memory);
    void forget_sleepers(BufferMemory* memory);
    static void queue_wake(void* context, struct kmes_buffer* buffer);

    // is_closed is set inside the section, so an emitter cannot slip by. owed_wake is a
    // BufferMemory, pinned.
    struct kmes_platform platform_ = {};
    const EmitterMode mode_;
    const Clock clock_;
    const struct kmes_cpu* cpu_ = nullptr;
    CounterClock counter_clock_;
    OwnerLock lock_;
    std::atomic<bool> is_attended_{false};
    bool passes_ = false;  // the holder is in with_others_out
};

}  // namespace kmes

#endif
