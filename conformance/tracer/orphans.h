// SPDX-License-Identifier: MIT
//
// The ended processes of a run whose parents have not waited for them. Knows no threads and no
// stops.

#ifndef CONFORMANCE_TRACER_ORPHANS_H_
#define CONFORMANCE_TRACER_ORPHANS_H_

#include <sys/types.h>

#include <cstddef>
#include <set>

namespace kmes::conformance::tracing {

// A process whose parent ends becomes a child of the runner, and not of init: some containers have
// an init that waits for nobody, and there each ended process would keep its number. Other runs of
// this runner are not affected: each reaps only the processes of its own tracer.
class Orphans {
  public:
    // Makes the runner the next parent (PR_SET_CHILD_SUBREAPER). It remains so.
    Orphans();

    // The tracer has received the end of this process. Its parent may still wait for it.
    void note_end(pid_t process);
    // Reaps those that have become children of the runner.
    void reap();

  private:
    std::set<pid_t> ended_;
    size_t reap_at_ = kFewEnded;

    static constexpr size_t kFewEnded = 1024;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_ORPHANS_H_
