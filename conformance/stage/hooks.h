// SPDX-License-Identifier: MIT
//
// The functions of a case for events of its testee, and the result that the case sets for futex
// waits. These are functions and no interface: a case sets the one or two that it needs, for a part
// of its course, next to the steps that need them.
#ifndef KMES_CONFORMANCE_STAGE_HOOKS_H_
#define KMES_CONFORMANCE_STAGE_HOOKS_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "conformance/tracer/events.h"
#include "conformance/tracer/types.h"

namespace kmes::conformance {

class Hooks {
  public:
    // Called after each successful mmap, while the thread is stopped.
    void set_on_mapped(std::function<void(const Mapped&)> function) {
        on_mapped_ = std::move(function);
    }
    // Called before each kmes_attach is answered, also if the call only asks for the number of
    // buffers.
    void set_on_attach(std::function<void(const AttachRequest&)> function) {
        on_attach_ = std::move(function);
    }
    // Called after each successful kmes_attach, while the thread is stopped.
    void set_on_attached(std::function<void(const Attached&)> function) {
        on_attached_ = std::move(function);
    }
    // Called before each write to the report, in every wait, while the thread is stopped. If it
    // returns true, the thread stays stopped, and the case passes it to Holding::hold_while(). Each
    // system call of the testee then stops. To be set before start().
    void set_on_report_write(std::function<bool(const ReportWrite&)> function) {
        on_report_write_ = std::move(function);
    }
    // The same for each system call of the testee, with its number.
    void set_on_call(std::function<bool(pid_t, long)> function) { on_call_ = std::move(function); }
    // Called in every iteration of a wait, for actions that depend on the state of the testee.
    // `is_quiet`: the testee makes no progress and owes something. Returns true if it did
    // something.
    void set_on_iteration(std::function<bool(bool is_quiet)> function) {
        on_iteration_ = std::move(function);
    }
    // Called at each entry into a futex wait on a ring word, before the kernel loads the word.
    void set_on_wait(std::function<void(const FutexWait&, std::uint32_t cpu)> function) {
        on_wait_ = std::move(function);
    }
    // Called at the end of such a wait.
    void set_on_wait_end(std::function<void(const FutexWaitEnd&)> function) {
        on_wait_end_ = std::move(function);
    }
    // Sets the result of waits on futex_counter that a wake has ended, for example -EINTR. 0: the
    // true result.
    void set_wake_result(std::int64_t result) { wake_result_ = result; }
    std::int64_t wake_result() const { return wake_result_; }
    // The number of waits that returned that result.
    std::uint64_t reported_wake_results() const { return reported_wake_results_; }
    void count_wake_result() { ++reported_wake_results_; }

    // -- For the stage: calls the functions of the case --
    void mapped(const Mapped& event) const {
        if (on_mapped_) on_mapped_(event);
    }
    void attach(const AttachRequest& request) const {
        if (on_attach_) on_attach_(request);
    }
    void attached(const Attached& event) const {
        if (on_attached_) on_attached_(event);
    }
    bool wants_report_writes() const { return on_report_write_ != nullptr; }
    bool holds_at(const ReportWrite& write) const {
        return on_report_write_ && on_report_write_(write);
    }
    bool wants_calls() const { return on_call_ != nullptr; }
    bool holds_at_call(pid_t thread, long number) const {
        return on_call_ && on_call_(thread, number);
    }
    bool iterate(bool is_quiet) const { return on_iteration_ && on_iteration_(is_quiet); }
    void wait(const FutexWait& event, std::uint32_t cpu) const {
        if (on_wait_) on_wait_(event, cpu);
    }
    void wait_end(const FutexWaitEnd& event) const {
        if (on_wait_end_) on_wait_end_(event);
    }

  private:
    std::function<void(const Mapped&)> on_mapped_;
    std::function<void(const AttachRequest&)> on_attach_;
    std::function<void(const Attached&)> on_attached_;
    std::function<bool(const ReportWrite&)> on_report_write_;
    std::function<bool(pid_t, long)> on_call_;
    std::function<bool(bool)> on_iteration_;
    std::function<void(const FutexWait&, std::uint32_t)> on_wait_;
    std::function<void(const FutexWaitEnd&)> on_wait_end_;
    std::int64_t wake_result_ = 0;
    std::uint64_t reported_wake_results_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_HOOKS_H_
