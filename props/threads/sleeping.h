// SPDX-License-Identifier: MIT
//
// The word on which a thread sleeps, for a watcher thread. The watcher is invisible to
// ThreadSanitizer, so it does not order accesses of a reader and the producer, and cannot hide a
// race between them.
#ifndef KMES_PROPS_THREADS_SLEEPING_H_
#define KMES_PROPS_THREADS_SLEEPING_H_

#include <linux/types.h>

namespace kmes::props {

class SleepingPlace {
  public:
    struct Snapshot {
        bool is_asleep = false;
        bool has_limit = false;
        __u32 expected = 0;  // the value of the word that the sleeper expects
        __u32 value = 0;     // the current value
    };

    void enter(__u32* word, __u32 expected, bool has_limit);
    void leave();

    Snapshot snapshot() const;
    // Wakes the thread as the producer should have done.
    void wake() const;

  private:
    void lock() const;
    void unlock() const;

    mutable unsigned char is_locked_ = 0;
    __u32* word_ = nullptr;  // nullptr: awake
    __u32 expected_ = 0;
    bool has_limit_ = false;
};

}  // namespace kmes::props

#endif  // KMES_PROPS_THREADS_SLEEPING_H_
