// SPDX-License-Identifier: MIT
//
// The place where a thread sleeps. See sleeping.h.
#include "props/threads/sleeping.h"

#include <sched.h>

#include "kmes/user/futex.h"

// Without this attribute TSan still uses atomic accesses of the function for synchronisation.
#if defined(__clang__)
#define UNSEEN __attribute__((disable_sanitizer_instrumentation, noinline))
#else
#define UNSEEN __attribute__((noinline))
#endif

namespace kmes::props {

UNSEEN void SleepingPlace::lock() const {
    while (__atomic_test_and_set(&is_locked_, __ATOMIC_ACQUIRE)) sched_yield();
}

UNSEEN void SleepingPlace::unlock() const {
    __atomic_clear(&is_locked_, __ATOMIC_RELEASE);
}

UNSEEN void SleepingPlace::enter(__u32* word, __u32 expected, bool has_limit) {
    lock();
    word_ = word;
    expected_ = expected;
    has_limit_ = has_limit;
    unlock();
}

UNSEEN void SleepingPlace::leave() {
    lock();
    word_ = nullptr;
    unlock();
}

// The sleeper needs the lock to leave, so its buffer is still mapped.
UNSEEN SleepingPlace::Snapshot SleepingPlace::snapshot() const {
    Snapshot sleeper;

    lock();
    if (word_) {
        sleeper.is_asleep = true;
        sleeper.has_limit = has_limit_;
        sleeper.expected = expected_;
        sleeper.value = __atomic_load_n(word_, __ATOMIC_RELAXED);
    }
    unlock();
    return sleeper;
}

UNSEEN void SleepingPlace::wake() const {
    lock();
    if (word_) kmes_futex_wake_all(word_);
    unlock();
}

}  // namespace kmes::props
