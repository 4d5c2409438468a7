// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Blocks every signal of the calling thread. No handler can then emit into its critical section,
// and a thread that starts meanwhile runs no handler of the program.
#ifndef KMES_USER_SIGNALS_BLOCKED_H
#define KMES_USER_SIGNALS_BLOCKED_H

#include <pthread.h>
#include <signal.h>

namespace kmes {

class SignalsBlocked {
  public:
    SignalsBlocked() {
        sigset_t all;

        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked&) = delete;
    SignalsBlocked& operator=(const SignalsBlocked&) = delete;

  private:
    sigset_t before_;
};

}  // namespace kmes

#endif
