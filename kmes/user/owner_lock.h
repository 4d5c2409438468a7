// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// A lock that knows who holds it, so that a signal handler which wants it in the middle of its own
// thread's critical section is turned away instead of waiting for itself (E16). Knows no ring.
#ifndef KMES_USER_OWNER_LOCK_H
#define KMES_USER_OWNER_LOCK_H

#include <atomic>
#include <cstdint>

namespace kmes {

// For critical sections of some hundred ns, or of a piece of a batch. Every function may be called
// in a signal handler: the holder and the fact of holding are one word, so there is no moment at
// which the one is known without the other.
class OwnerLock {
  public:
    OwnerLock() = default;
    OwnerLock(const OwnerLock&) = delete;
    OwnerLock& operator=(const OwnerLock&) = delete;

    // False: this thread holds it already, and nothing has changed. Else waits, and has it.
    bool lock();
    // As lock(), but waits no longer than a critical section takes. False: not held, and nothing
    // has changed.
    bool try_lock();
    // Another thread has held it for longer than a critical section takes, or others did in turn.
    bool is_held_long() const;
    void unlock();
    // From a thread that has let go, and takes the lock again soon: returns once one of those who
    // wait for it now has had it, or after `timeout_ns`. Without this it would nearly always be
    // first again: a thread that waits may be asleep, and takes long to come.
    void let_others_in(uint64_t timeout_ns);
    // This thread holds it.
    bool is_held_here() const;

  private:
    void wait_in_turn(uint64_t self);
    bool lock_soon(uint64_t self);
    void lock_slowly(uint64_t self);
    uint32_t* futex_word();

    // 0: free. Else the thread that holds it; the lowest bit says that others sleep.
    std::atomic<uint64_t> word_{0};
    std::atomic<unsigned> waiters_{0};
    std::atomic<unsigned> waited_{0};  // how many have waited and had it, modulo 2^32
};

}  // namespace kmes

#endif
