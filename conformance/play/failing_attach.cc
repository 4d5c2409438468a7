// SPDX-License-Identifier: MIT
//
// See failing_attach.h.
#include "conformance/play/failing_attach.h"

#include <fmt/format.h>
#include <string.h>
#include <sys/syscall.h>

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

namespace kmes::conformance {

namespace {

constexpr std::string_view kClause = "contract-1";

// True for calls that may be a rest between two attempts: all but these.
bool may_rest_in(long call) {
    static constexpr long kRestless[] = {
        1091,           SYS_close,         SYS_mmap,    SYS_munmap,   SYS_fstat,
        SYS_newfstatat, SYS_statx,         SYS_write,   SYS_writev,   SYS_clock_gettime,
        SYS_getpid,     SYS_gettid,        SYS_madvise, SYS_mprotect, SYS_brk,
        SYS_fcntl,      SYS_sched_yield,   SYS_openat,  SYS_lseek,    SYS_tgkill,
        SYS_getrandom,  SYS_rt_sigprocmask};
    return std::find(std::begin(kRestless), std::end(kRestless), call) == std::end(kRestless);
}

}  // namespace

FailingAttach::FailingAttach(Stage& stage) : stage_(stage) {
    stage.waits().set_nudging(false);  // no nudge may replace another attempt
    stage.findings().allow_early_exit();
    stage.hooks().set_on_call([this](pid_t, long number) {
        if (is_failing_ && may_rest_in(number)) without_rest_ = 0;
        return false;
    });
    stage.hooks().set_on_attach([this](const AttachRequest&) { answer(); });
    stage.hooks().set_on_iteration([this](bool) {
        watch();
        return false;
    });
}

FailingAttach::~FailingAttach() {
    stage_.hooks().set_on_call(nullptr);
    stage_.hooks().set_on_attach(nullptr);
    stage_.hooks().set_on_iteration(nullptr);
}

void FailingAttach::fail(std::uint32_t cpu, int error, int times, int passed) {
    const auto& events = stage_.rings().history().events_of(cpu);
    owed_ = Owed{cpu, events.empty() ? 0 : events.back().sequence};
    error_ = error;
    times_ = times;
    passed_ = passed;
    without_rest_ = 0;
}

void FailingAttach::answer() {
    slept_ = {};
    is_failing_ = false;
    if (passed_ > 0) {
        --passed_;
        return;
    }
    const bool goes_on = without_rest_ > kAtOnce && without_rest_ < kWithoutRest;
    if (times_ <= 0 && !goes_on) return;
    --times_;
    ++without_rest_;
    is_failing_ = true;
    stage_.attach_answers().set_errors({error_});
}

// Only time in which every thread sleeps counts: a thread that waits for a processor is not to
// blame.
void FailingAttach::watch() {
    const TimePoint now = Clock::now();
    const Clock::duration passed = now - std::exchange(checked_at_, now);
    if (without_rest_ >= kWithoutRest)
        stop_failed(kClause, fmt::format("The consumer calls kmes_attach {} times without a "
                                         "rest, while it fails with {}; expected a rest "
                                         "between two attempts",
                                         without_rest_, strerrorname_np(error_)));
    if (!is_failing_) return;
    const std::vector<pid_t> threads = stage_.testee().tracer().testee_threads();
    const bool all_sleep = std::all_of(threads.begin(), threads.end(), [this](pid_t thread) {
        return stage_.testee().tracer().activity(thread) == Activity::kBlocked;
    });
    const bool slept_before = std::exchange(all_slept_, all_sleep);
    constexpr std::chrono::milliseconds kGap{
        50};  // after a longer gap, the runner had no processor
    if (all_sleep && slept_before && passed < kGap) slept_ += passed;
    if (slept_ > kRests)
        stop_failed(kClause,
                    fmt::format("The consumer sleeps for {} ms after kmes_attach has failed "
                                "with {}, without another attempt; expected one after 100 ms "
                                "at the latest",
                                slept_ / std::chrono::milliseconds(1), strerrorname_np(error_)));
}

CaseOutcome FailingAttach::finish_given_up() {
    const std::uint64_t delivered = stage_.testee().progress().last_sequence(owed_.cpu);
    if (delivered < owed_.sequence)
        stage_.findings().blame(
            kClause, fmt::format("CPU {}: the consumer ends after kmes_attach has failed, and has "
                                 "delivered no event after {}; expected all of the old buffer "
                                 "first, to event {}",
                                 owed_.cpu, delivered, owed_.sequence));
    return stage_.ending().finish_any_exit();
}

}  // namespace kmes::conformance
