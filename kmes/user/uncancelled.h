/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Disables the cancellation of the calling thread (pthread_cancel), and restores it. Many system
 * calls are cancellation points. A thread that ends in one keeps the locks of this library for
 * ever, and its descriptors stay open. Cancellation inside a destructor ends the whole process.
 * Each public function that takes a lock or owns a descriptor therefore begins with
 * KMES_UNCANCELLED or Uncancelled. A request for
 * cancellation stays pending, and takes effect at the next cancellation point of the caller.
 */
#ifndef KMES_USER_UNCANCELLED_H
#define KMES_USER_UNCANCELLED_H

#include <pthread.h>

static inline int kmes_cancel_disable(void) {
    int before;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void kmes_cancel_restore(const int* before) {
    pthread_setcancelstate(*before, NULL);
}

/* For the rest of the block, as a declaration. errno remains as it is. */
#define KMES_UNCANCELLED                                                                 \
    const int kmes_cancel_before __attribute__((cleanup(kmes_cancel_restore), unused)) = \
        kmes_cancel_disable()

#ifdef __cplusplus

namespace kmes {

class Uncancelled {
  public:
    Uncancelled() : before_(kmes_cancel_disable()) {}
    ~Uncancelled() { kmes_cancel_restore(&before_); }
    Uncancelled(const Uncancelled&) = delete;
    Uncancelled& operator=(const Uncancelled&) = delete;

  private:
    const int before_;
};

}  // namespace kmes

#endif

#endif
