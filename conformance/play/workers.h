// SPDX-License-Identifier: MIT
//
// What threads of the runner need that trace a testee each, beside one another.
#ifndef KMES_CONFORMANCE_PLAY_WORKERS_H_
#define KMES_CONFORMANCE_PLAY_WORKERS_H_

#include <signal.h>

#include <vector>

namespace kmes::conformance {

// The processors that this thread may use; empty if the kernel does not say.
std::vector<int> allowed_processors();

// While it lives, this thread and the threads that it starts block SIGCHLD, and the action for it
// is the default. Each stop of a testee sends a SIGCHLD to the process. The kernel would look for a
// thread that does not block it, and wake that thread only to discard the signal. An action that
// ignores children would hide their stops.
class ChildSignalBlocked {
  public:
    ChildSignalBlocked();
    ~ChildSignalBlocked();
    ChildSignalBlocked(const ChildSignalBlocked&) = delete;
    ChildSignalBlocked& operator=(const ChildSignalBlocked&) = delete;

  private:
    struct sigaction action_before_;
    sigset_t mask_before_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_PLAY_WORKERS_H_
