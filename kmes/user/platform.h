// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The platform of one producer CPU in userspace (kmes/platform.h): its clock, its critical section
// in one of two modes, and its wakes. It uses buffers only to wake their sleepers.
#ifndef KMES_USER_PLATFORM_H
#define KMES_USER_PLATFORM_H

#include <atomic>
#include <cstdint>

#include "kmes/platform.h"
#include "kmes/user/counter_clock.h"
#include "kmes/user/memory.h"
#include "kmes/user/owner_lock.h"

namespace kmes {

// The mutual exclusion of the emitters of one CPU.
enum class EmitterMode {
    // One lock for each CPU: any thread may emit on any CPU at any time. A signal handler that
    // emits during an emission of its own thread is rejected and counted, and its gap is visible
    // (E16). A handler that interrupts an emission must not emit on another CPU. It would wait
    // there while it holds a lock, and two such handlers could deadlock.
    kLocked,
    // No lock: the caller promises that calls on one CPU from different threads never overlap,
    // except attach. That includes resize, retire and statistics, which access every CPU. A signal
    // handler on the emitting thread is rejected as above.
    kSingle,
};

// A clock that can be injected: a function that returns ns, and its context.
struct Clock {
    // NULL: CLOCK_REALTIME, read from the counter if that is usable (counter_clock.h).
    uint64_t (*now_ns)(void* context) = nullptr;
    void* context = nullptr;
};

// Clears need_wake when no consumer can be asleep any more (E12). It also increments the counter,
// for a consumer that has set need_wake nevertheless. Call it inside the critical section of the
// buffer's CPU. True: the flag was set, and kmes_futex_wake_all() is due.
//
// CLEAR_WAKE comes before COUNTER. Consider a consumer that is not known. If it loaded the new
// counter, it sets its flag after this clear. If it loaded the old counter, it finds another value
// in its futex_wait, or is woken, and asks again. A consumer that loads the counter after it has
// set the flag is not covered, unless it has a lease. If `is_attended` is true after the clear, a
// consumer has attached meanwhile, and the flag is set again.
bool clear_need_wake(struct kmes_buffer* buffer, const std::atomic<bool>* is_attended = nullptr);

// Not movable: the core keeps the address of platform().
class CpuPlatform {
  public:
    CpuPlatform(EmitterMode mode, Clock clock);
    CpuPlatform(const CpuPlatform&) = delete;
    CpuPlatform& operator=(const CpuPlatform&) = delete;

    struct kmes_platform* platform() { return &platform_; }

    // Call it before the first event, with the CPU of this critical section. Without it, need_wake
    // is never cleared.
    void set_cpu(const struct kmes_cpu* cpu) { cpu_ = cpu; }

    // kLocked: true if this thread is in the critical section. kSingle: unknown, so always false.
    bool is_held_here() const { return lock_.is_held_here(); }

    // Runs `work` with every other emitter of the CPU excluded. In `work`, calls of the core may
    // enter the critical section. The caller is not inside it, and has its signals blocked.
    template <typename Work>
    void with_others_out(Work work) {
        if (mode_ == EmitterMode::kLocked) lock_.lock();
        run_inside(work);
    }

    // As with_others_out, but gives up if an emitter stays inside for longer than an emission
    // takes, for example with an open reservation. False: `work` was not run.
    template <typename Work>
    bool try_with_others_out(Work work) {
        if (mode_ == EmitterMode::kLocked && !lock_.try_lock()) return false;
        run_inside(work);
        return true;
    }

    // Call it between two sections of one thread: a waiting emitter goes first, unless it takes
    // more than 2 ms.
    void let_emitters_in() { lock_.let_others_in(2'000'000); }

    // True if such an emitter is inside now.
    bool is_held_long() const { return mode_ == EmitterMode::kLocked && lock_.is_held_long(); }

    // `is_attended`: a consumer may be asleep whose end the producer notices, or of which it knows
    // nothing. If it is false, a wake that reaches no sleeper clears need_wake: the consumer that
    // set it was killed in its sleep, without a lease. Only for kLocked.
    void set_attended(bool is_attended) {
        is_attended_.store(is_attended, std::memory_order_relaxed);
    }

    // Call it inside with_others_out: no emitter enters the critical section from now on.
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

    // is_closed is set inside the section, so no emitter can miss it. owed_wake is a pinned
    // BufferMemory.
    struct kmes_platform platform_ = {};
    const EmitterMode mode_;
    const Clock clock_;
    const struct kmes_cpu* cpu_ = nullptr;
    CounterClock counter_clock_;
    OwnerLock lock_;
    std::atomic<bool> is_attended_{false};
    bool passes_ = false;  // the owner is in with_others_out
};

}  // namespace kmes

#endif
