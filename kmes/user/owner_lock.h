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
    void unlock();
    // This thread holds it.
    bool is_held_here() const;

  private:
    void lock_slowly(uint64_t self);
    uint32_t* futex_word();

    // 0: free. Else the thread that holds it; the lowest bit says that others sleep.
    std::atomic<uint64_t> word_{0};
};

}  // namespace kmes

#endif
