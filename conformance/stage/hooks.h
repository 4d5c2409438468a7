// SPDX-License-Identifier: MIT
//
// What a case wants done at events of its testee, and the result that it wants a futex wait to
// have. Decides nothing itself.
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
    // Called at each successful mmap, while the testee stands still after it.
    void set_on_mapped(std::function<void(const Mapped&)> function) {
        on_mapped_ = std::move(function);
    }
    // Called at each kmes_attach, a question for the number among them, before it is answered.
    void set_on_attach(std::function<void(const AttachRequest&)> function) {
        on_attach_ = std::move(function);
    }
    // Called at each kmes_attach that was served, while the testee stands still after it.
    void set_on_attached(std::function<void(const Attached&)> function) {
        on_attached_ = std::move(function);
    }
    // Asked at each write to the report, while the thread stands before it, in every wait; true: it
    // is held there, to be given to Holding::hold_while. Each system call stops then: before
    // start().
    void set_on_report_write(std::function<bool(const ReportWrite&)> function) {
        on_report_write_ = std::move(function);
    }
    // The same for each system call of the testee, by its number.
    void set_on_call(std::function<bool(pid_t, long)> function) { on_call_ = std::move(function); }
    // Called again and again in every wait: for what a case does when it finds the testee in some
    // state. `is_quiet`: nothing moves any more and something is owed. True: it did something.
    void set_on_round(std::function<bool(bool is_quiet)> function) {
        on_round_ = std::move(function);
    }
    // Called at each entry into a futex wait on a ring word, before the kernel looks at the word.
    void set_on_wait(std::function<void(const FutexWait&, std::uint32_t cpu)> function) {
        on_wait_ = std::move(function);
    }
    // Called when such a wait is over.
    void set_on_wait_end(std::function<void(const FutexWaitEnd&)> function) {
        on_wait_end_ = std::move(function);
    }
    // What waits on futex_counter return instead of 0: -EINTR, a wait that was interrupted. 0: the
    // truth.
    void set_wake_result(std::int64_t result) { wake_result_ = result; }
    std::int64_t wake_result() const { return wake_result_; }
    // How many waits returned that.
    std::uint64_t wake_results_told() const { return wake_results_told_; }
    void count_wake_result() { ++wake_results_told_; }

    // -- For the stage: does what the case wants at this event --
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
    bool round(bool is_quiet) const { return on_round_ && on_round_(is_quiet); }
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
    std::function<bool(bool)> on_round_;
    std::function<void(const FutexWait&, std::uint32_t)> on_wait_;
    std::function<void(const FutexWaitEnd&)> on_wait_end_;
    std::int64_t wake_result_ = 0;
    std::uint64_t wake_results_told_ = 0;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_HOOKS_H_
