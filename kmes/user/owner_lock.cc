// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The lock that records its owner. See owner_lock.h.
#include "kmes/user/owner_lock.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "kmes/user/futex.h"

namespace kmes {
namespace {

constexpr uint64_t kSleepers = 1;
constexpr int kChecksBeforeSleep = 100;  // a critical section is about as long

// The address of the thread's control block: it is even, and a signal handler can get it.
uint64_t this_thread() {
    return static_cast<uint64_t>(pthread_self());
}

// Tells the processor that this is a spin loop, if the processor has an instruction for it.
void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

void private_futex(uint32_t* word, int operation, uint32_t value) {
    int saved = errno;

    syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
    errno = saved;
}

}  // namespace

bool OwnerLock::lock() {
    const uint64_t self = this_thread();
    uint64_t seen = 0;

    if (word_.compare_exchange_strong(seen, self, std::memory_order_acquire)) return true;
    if ((seen & ~kSleepers) == self) return false;
    wait_in_turn(self);
    return true;
}

bool OwnerLock::try_lock() {
    return !is_held_here() && lock_soon(this_thread());
}

bool OwnerLock::is_held_long() const {
    for (int check = 0; check < kChecksBeforeSleep; check++) {
        if (word_.load(std::memory_order_relaxed) == 0) return false;
        relax();
    }
    return !is_held_here();
}

bool OwnerLock::lock_soon(uint64_t self) {
    for (int check = 0; check < kChecksBeforeSleep; check++) {
        uint64_t expected = 0;

        if (word_.load(std::memory_order_relaxed) == 0 &&
            word_.compare_exchange_weak(expected, self, std::memory_order_acquire))
            return true;
        relax();
    }
    return false;
}

// Not inline: an emission that need not wait does not need it.
[[gnu::noinline]] void OwnerLock::wait_in_turn(uint64_t self) {
    waiters_.fetch_add(1, std::memory_order_relaxed);
    lock_slowly(self);
    waited_.fetch_add(1, std::memory_order_relaxed);
    waiters_.fetch_sub(1, std::memory_order_relaxed);
}

void OwnerLock::lock_slowly(uint64_t self) {
    if (lock_soon(self)) return;
    for (;;) {
        uint64_t seen = word_.load(std::memory_order_relaxed);

        if (seen == 0) {
            // Other threads may sleep: a thread that has slept keeps the mark set.
            if (word_.compare_exchange_strong(seen, self | kSleepers, std::memory_order_acquire))
                return;
            continue;
        }
        if (!(seen & kSleepers) &&
            !word_.compare_exchange_strong(seen, seen | kSleepers, std::memory_order_relaxed))
            continue;
        private_futex(futex_word(), FUTEX_WAIT, static_cast<uint32_t>(seen | kSleepers));
    }
}

void OwnerLock::unlock() {
    if (word_.exchange(0, std::memory_order_release) & kSleepers)
        private_futex(futex_word(), FUTEX_WAKE, 1);
}

// A spinning waiter comes within a few checks. A sleeping waiter may need this thread's processor.
void OwnerLock::let_others_in(uint64_t timeout_ns) {
    const unsigned waited = waited_.load(std::memory_order_relaxed);
    uint64_t deadline_ns = 0;
    int checks = 0;

    while (waiters_.load(std::memory_order_relaxed) > 0 &&
           waited_.load(std::memory_order_relaxed) == waited) {
        relax();
        if (++checks < kChecksBeforeSleep) continue;
        const uint64_t now_ns = kmes_clock_monotonic_ns();

        if (deadline_ns == 0) deadline_ns = now_ns + timeout_ns;
        if (now_ns >= deadline_ns) return;
        sched_yield();
    }
}

bool OwnerLock::is_held_here() const {
    return (word_.load(std::memory_order_relaxed) & ~kSleepers) == this_thread();
}

// The half of the word that contains the mark. Owners may differ only in the other half. This is
// safe: while the mark is set, a waiter will be woken.
uint32_t* OwnerLock::futex_word() {
    static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half comes first");

    return reinterpret_cast<uint32_t*>(&word_);
}

}  // namespace kmes
