// SPDX-License-Identifier: MIT
//
// A kmes_attach that fails after a change of generation (contract, decided on 2026-11-25). The
// consumer delivers the unread events of the old buffer. Then it tries again at most 100 ms after
// each failure, or exits with a non-zero status.
#include <fmt/format.h>
#include <string.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "conformance/cases/play.h"
#include "conformance/oracle/layout.h"

namespace kmes::conformance {

namespace {

using enum Level;

constexpr std::string_view kClause = "contract-1";
// EAGAIN, if the form of the layout has it.
const int kNotYet = layout().error_before_rings;
const int kErrors[] = {kNotYet, ENOMEM, EMFILE, ENFILE, EPERM};

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

// Makes calls of kmes_attach fail, and checks the consumer's actions in between. Create it before
// start().
class FailingAttach {
  public:
    explicit FailingAttach(Stage& stage) : stage_(stage) {
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

    // The next `times` calls after the first `passed` ones fail.
    void fail(int error, int times, int passed = 0) {
        error_ = error;
        times_ = times;
        passed_ = passed;
    }

  private:
    // A correct consumer reaches neither limit: one attempt may follow another at once.
    static constexpr int kAtOnce = 2;
    static constexpr int kWithoutRest = 300;
    static constexpr Clock::duration kRests = std::chrono::milliseconds(400);

    void answer() {
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
    void watch() {
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
            stop_failed(
                kClause,
                fmt::format("The consumer sleeps for {} ms after kmes_attach has failed "
                            "with {}, without another attempt; expected one after 100 ms "
                            "at the latest",
                            slept_ / std::chrono::milliseconds(1), strerrorname_np(error_)));
    }

    Stage& stage_;
    int error_ = 0;
    int times_ = 0;
    int passed_ = 0;
    int without_rest_ = 0;
    bool is_failing_ = false;  // the last call has failed
    bool all_slept_ = false;
    TimePoint checked_at_;
    Clock::duration slept_{};
};

struct FailingChange {
    std::uint32_t cpu = 0;
    std::uint64_t unread = 0;  // events that only the old buffer has
    int error = 0;
    int times = 1;
    int passed = 0;
};

// The last event that the testee must deliver before it gives up.
struct Owed {
    std::uint32_t cpu = 0;
    std::uint64_t sequence = 0;
};

// Events, a change, and a lap of the next buffer; the following attaches fail.
Owed change(Stage& stage, FailingAttach& attach, const FailingChange& what) {
    emit_some(stage, what.cpu, what.unread, 200);
    const auto& events = stage.rings().history().events_of(what.cpu);
    const Owed owed{what.cpu, events.empty() ? 0 : events.back().sequence};
    attach.fail(what.error, what.times, what.passed);
    stage.rings().swap(what.cpu, SwapSpec{stage.capacity_bytes(), PositionRule::keep, 0});
    if (what.unread > 0) lap(stage, what.cpu, 4000);
    return owed;
}

// The testee has exited with a non-zero status: correct if it delivered the old buffer before.
CaseOutcome end_given_up(Stage& stage, const Owed& owed) {
    const std::uint64_t delivered = stage.testee().progress().last_sequence(owed.cpu);
    if (delivered < owed.sequence)
        stage.findings().blame(
            kClause, fmt::format("CPU {}: the consumer ends after kmes_attach has failed, and has "
                                 "delivered no event after {}; expected all of the old buffer "
                                 "first, to event {}",
                                 owed.cpu, delivered, owed.sequence));
    return stage.ending().finish_any_exit();
}

// One change after the other, each from sleep to sleep.
CaseOutcome play_changes(Stage& stage, const std::vector<FailingChange>& changes) {
    FailingAttach attach(stage);
    Owed owed;
    stage.start();
    try {
        for (const FailingChange& each : changes) {
            stage.wait_asleep();
            // The consumer is proven to read this buffer, and not only to have it.
            emit_everywhere(stage, 1, 100);
            stage.wait_asleep();
            stage.holding().freeze();
            owed = change(stage, attach, each);
            // Unread events of the other CPUs are in live buffers.
            for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
                if (cpu != each.cpu) emit_some(stage, cpu, 2, 100);
            }
            stage.holding().thaw();
        }
        stage.wait_asleep();
    } catch (const EarlyExit&) {
        return end_given_up(stage, owed);
    }
    return stage.finish();
}

// The changes on `cpus` CPUs.
struct Changes {
    std::uint32_t cpus;
    std::vector<FailingChange> changes;

    CaseOutcome operator()(Stage& stage) const {
        const bool has_eagain = std::ranges::any_of(
            changes, [](const FailingChange& each) { return each.error == EAGAIN; });
        if (has_eagain && kNotYet != EAGAIN)
            stop_not_applicable("kmes_attach does not fail with EAGAIN");
        set_up_cpus(stage, cpus);
        return play_changes(stage, changes);
    }
};

Changes fails_with(int error) {
    return {1,
            {{0, 24, error, 1},
             {0, 24, error, 6},
             {0, 0, error, 1},
             {0, 0, error, 6},
             {0, 5, error, 1, 1},
             {0, 5, error, 6, 1}}};
}

// The change comes before each access to the page in turn, each time with another error.
CaseOutcome fails_at_every_step(Stage& stage) {
    constexpr std::uint64_t kStepsAtMost = 40;
    set_up_one_cpu(stage);
    FailingAttach attach(stage);
    Owed owed;
    stage.start();
    try {
        stage.wait_asleep();
        WalkLimit limit(stage);
        for (std::uint64_t k = 1; k < kStepsAtMost && !limit.is_over(); ++k) {
            const int error = kErrors[k % std::size(kErrors)];
            const bool was_there =
                act_at_access(stage, 0, k, [&] { owed = change(stage, attach, {0, 3, error, 1}); });
            if (!was_there) break;
        }
        stage.wait_asleep();
    } catch (const EarlyExit&) {
        return end_given_up(stage, owed);
    }
    return stage.finish();
}

constexpr std::string_view kGoesOn =
    "The consumer delivers everything in the old buffer. It tries again after 100 ms at most, and "
    "rests between two attempts, or it exits with a non-zero status.";
constexpr Common kFails{
    must,
    "Replace the buffer. Fail the next kmes_attach, once and six times in a row, with 24 unread "
    "events in the old buffer and with none. Then fail the attach after that.",
    kGoesOn};

}  // namespace

const std::vector<Case> kLaterAttachCases = {
    kFails("contract-1/later-attach-eagain", "EAGAIN at a later attach", fails_with(EAGAIN)),
    kFails("contract-1/later-attach-enomem", "ENOMEM at a later attach", fails_with(ENOMEM)),
    kFails("contract-1/later-attach-emfile", "EMFILE at a later attach", fails_with(EMFILE)),
    kFails("contract-1/later-attach-enfile", "ENFILE at a later attach", fails_with(ENFILE)),
    kFails("contract-1/later-attach-eperm", "EPERM at a later attach", fails_with(EPERM)),
    {"contract-1/later-attach-with-nothing-unread", must,
     "a failed later attach with nothing unread",
     "Replace the buffer after every event is delivered. Fail the next kmes_attach twice, with "
     "each error in turn.",
     kGoesOn,
     Changes{1,
             {{0, 0, kNotYet, 2},
              {0, 0, ENOMEM, 2},
              {0, 0, EMFILE, 2},
              {0, 0, ENFILE, 2},
              {0, 0, EPERM, 2}}}},
    {"contract-1/later-attach-beside-others", must, "a failed later attach for one CPU of four",
     "Replace the buffer of one CPU of four. Fail the next kmes_attach, with each error in turn. "
     "Emit events on the other CPUs.",
     kGoesOn,
     Changes{4,
             {{2, 10, kNotYet, 1},
              {3, 10, ENOMEM, 5},
              {0, 10, EMFILE, 1},
              {1, 10, ENFILE, 5},
              {2, 10, EPERM, 1}}}},
    {"contract-1/later-attach-at-every-step", must, "a change at every step, and a failed attach",
     "Before each access of the consumer in turn, emit three events and replace the buffer. Fail "
     "the next kmes_attach once.",
     kGoesOn, fails_at_every_step},
};

}  // namespace kmes::conformance
