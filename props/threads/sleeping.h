// SPDX-License-Identifier: MIT
//
// The place where a thread sleeps, for a watcher thread. The watcher is invisible to
// ThreadSanitizer, so it orders nothing between a reader and the producer: a race between them
// stays a race. Knows words and values, no ring.
#ifndef KMES_PROPS_THREADS_SLEEPING_H_
#define KMES_PROPS_THREADS_SLEEPING_H_

#include <linux/types.h>

namespace kmes::props {

class SleepingPlace {
  public:
    struct Look {
        bool is_asleep = false;
        bool has_limit = false;
        __u32 expected = 0;  // the value that the sleeper read in the word
        __u32 value = 0;     // the current value
    };

    void enter(__u32* word, __u32 expected, bool has_limit);
    void leave();

    Look look() const;
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
