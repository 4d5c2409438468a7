// SPDX-License-Identifier: MIT
//
// The threads and processes of a run: which process is the testee, and which threads may run. A
// record: it stops and resumes nothing. It reaps only what has ended.

#ifndef CONFORMANCE_TRACER_TRACEES_H_
#define CONFORMANCE_TRACER_TRACEES_H_

#include <sys/types.h>

#include <cstddef>
#include <map>
#include <vector>

#include "conformance/tracer/orphans.h"
#include "conformance/tracer/thread.h"

namespace kmes::conformance::tracing {

class Tracees {
  public:
    // The testee's process; 0 before the first attach.
    pid_t testee() const { return testee_; }
    void choose_testee(pid_t process) { testee_ = process; }
    bool is_testee(const Thread& thread) const { return testee_ != 0 && thread.process == testee_; }

    // Null if there is no such thread.
    Thread* find(pid_t tid);
    Thread& add(pid_t tid, pid_t process);
    void remove(pid_t tid) { threads_.erase(tid); }
    std::map<pid_t, Thread>& threads() { return threads_; }
    std::vector<pid_t> all_threads() const;
    // Before the first attach any process of the run may become the testee, so these are the
    // threads of all.
    std::vector<pid_t> testee_threads() const;
    // A thread of the testee that /proc does not show as ended; 0: none.
    pid_t live_testee_thread() const;

    bool knows_process(pid_t process) const { return processes_.count(process) != 0; }
    bool has_processes() const { return !processes_.empty(); }
    size_t process_count() const { return processes_.size(); }
    // Returns the record of a process. Creates it if there is none.
    Process& process(pid_t process);
    Process& process_of(const Thread& thread) { return process(thread.process); }
    // Removes the other threads of its process.
    void remove_siblings(const Thread& thread);
    // The process has ended.
    void remove_process(pid_t process);
    // Reaps the ended processes that no parent has waited for. The parents must have ended.
    void reap_orphans() { orphans_.reap(); }
    void remove_testee_threads();
    void clear();

    // A held thread stays stopped. Does nothing for an unknown thread.
    void set_held(pid_t tid, bool is_held);
    // While the testee is frozen, its threads stay stopped.
    bool is_frozen() const { return is_frozen_; }
    void set_frozen(bool is_frozen) { is_frozen_ = is_frozen; }
    bool is_frozen(const Thread& thread) const { return is_frozen_ && is_testee(thread); }
    bool may_run(const Thread& thread) const {
        return thread.stopped && !thread.in_backlog && thread.queued_events == 0 && !thread.held &&
               !is_frozen(thread);
    }

  private:
    std::map<pid_t, Thread> threads_;
    std::map<pid_t, Process> processes_;
    Orphans orphans_;
    pid_t testee_ = 0;
    bool is_frozen_ = false;
};

}  // namespace kmes::conformance::tracing

#endif  // CONFORMANCE_TRACER_TRACEES_H_
