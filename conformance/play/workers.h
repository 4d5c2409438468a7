// SPDX-License-Identifier: MIT
//
// Support for several threads of the runner that each trace a testee at the same time.
#ifndef KMES_CONFORMANCE_PLAY_WORKERS_H_
#define KMES_CONFORMANCE_PLAY_WORKERS_H_

#include <signal.h>

#include <vector>

namespace kmes::conformance {

// The processors that this thread may use; empty if the kernel does not say.
std::vector<int> allowed_processors();

// While the object exists, this thread and the threads that it starts block SIGCHLD, and its action
// is the default. Each stop of a testee sends SIGCHLD to the process. The kernel would wake a
// thread that does not block the signal, only to discard it. An action that ignores children would
// hide their stops.
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
