// SPDX-License-Identifier: GPL-2.0-only OR MIT
// A lock that records its owner. A signal handler that wants the lock during its own thread's
// critical section is rejected, and does not wait for itself (E16). It uses no ring.
#ifndef KMES_USER_OWNER_LOCK_H
#define KMES_USER_OWNER_LOCK_H

#include <atomic>
#include <cstdint>

namespace kmes {

// For critical sections of some hundred ns, or of a piece of a batch. A signal handler may call
// every function. The owner and the state are one word, so they always agree.
class OwnerLock {
  public:
    OwnerLock() = default;
    OwnerLock(const OwnerLock&) = delete;
    OwnerLock& operator=(const OwnerLock&) = delete;

    // Takes the lock, and waits for it. Returns false without effect if this thread already holds
    // it.
    bool lock();
    // The same, but returns false after a wait that is longer than a critical section.
    bool try_lock();
    // Returns true if other threads have held it, one or several in turn, for longer than a
    // critical section takes.
    bool is_held_long() const;
    void unlock();
    // For a thread that has released the lock, and takes it again soon. Returns when one of the
    // current waiters has had the lock, or after `timeout_ns`. Without it this thread would nearly
    // always be first again, because a waiter may be asleep and needs long to wake.
    void let_others_in(uint64_t timeout_ns);
    // Returns true if this thread holds it.
    bool is_held_here() const;

  private:
    void wait_in_turn(uint64_t self);
    bool lock_soon(uint64_t self);
    void lock_slowly(uint64_t self);
    uint32_t* futex_word();

    // 0: free. Otherwise the owner thread; the lowest bit means that others sleep.
    std::atomic<uint64_t> word_{0};
    std::atomic<unsigned> waiters_{0};
    std::atomic<unsigned> waited_{0};  // number of waiters that have taken it, modulo 2^32
};

}  // namespace kmes

#endif
