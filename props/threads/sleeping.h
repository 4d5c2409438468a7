// SPDX-License-Identifier: MIT
//
// Where a thread sleeps, for another one that watches over it. What the watcher does is invisible
// to ThreadSanitizer, so that it orders nothing between a reader and the producer: what only it
// would order has to stay a race. Knows words and values, no ring.
#ifndef KMES_PROPS_THREADS_SLEEPING_H_
#define KMES_PROPS_THREADS_SLEEPING_H_

#include <linux/types.h>

namespace kmes::props {

class SleepingPlace {
  public:
    struct Look {
        bool is_asleep = false;
        bool has_limit = false;
        __u32 expected = 0;  // what the sleeper saw in the word, and will sleep on
        __u32 value = 0;     // what is there now
    };

    void enter(__u32* word, __u32 expected, bool has_limit);
    void leave();

    Look look() const;
    // Wakes it as the producer should have done.
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
