// SPDX-License-Identifier: MIT
//
// A resize or the boot hand-over in the middle of an attach (5.1.2, E14, E19).
#include <algorithm>
#include <map>
#include <memory>

#include "conformance/cases/play.h"
#include "conformance/play/row.h"

namespace kmes::conformance {

namespace {

using enum Level;

// One CPU moves to a new buffer, and the buffer is swapped once more at the `k`-th step of the
// move. A step is a served kmes_attach, an mmap, or an access to the mapped page. Returns false if
// there was no such step.
bool swap_at_step_of_attach(Stage& stage, std::uint64_t k) {
    constexpr std::uint64_t kAccessesAtMost = 40;
    std::uint64_t steps = 0;
    const auto step = [&] {
        if (++steps != k) return false;
        stage.resize(stage.capacity_bytes());
        emit_some(stage, 0, 1, 70);
        return true;
    };
    stage.hooks().set_on_attached([&](const Attached& attached) {
        if (attached.error == 0) step();
    });
    stage.hooks().set_on_mapped([&](const Mapped& mapped) {
        if (step() || steps > k || !is_present(stage, mapped, 0)) return;
        std::uint64_t left = kAccessesAtMost;
        stage.guards().guard(0, 0, 1, [&step, left](const GuardHit&) mutable {
            return step() || --left == 0 ? AtGuard::release : AtGuard::step;
        });
    });
    stage.resize(stage.capacity_bytes());
    emit_some(stage, 0, 1, 70);
    stage.wait_asleep();
    stage.guards().release();
    stage.hooks().set_on_attached(nullptr);
    stage.hooks().set_on_mapped(nullptr);
    return steps >= k;
}

void resize_at_every_step_of_an_attach(Stage& stage) {
    constexpr std::uint64_t kStepsAtMost = 60;
    for (std::uint64_t k = 1; k <= kStepsAtMost && !stage.testee().has_ended(0); ++k) {
        if (!swap_at_step_of_attach(stage, k)) break;
    }
}

// Whether another thread than `tid` has mapped a buffer since there were `maps` of them, and one
// sleeps.
bool another_is_there(Stage& stage, pid_t tid, std::size_t maps) {
    const auto first = stage.testee().maps().begin() + static_cast<std::ptrdiff_t>(maps);
    const bool has_mapped = std::any_of(first, stage.testee().maps().end(),
                                        [tid](const Mapped& mapped) { return mapped.tid != tid; });
    return has_mapped && (stage.wait_log().asleep(0) || stage.wait_log().asleep(1));
}

// Replaces the buffers by some of `next_bytes` while `tid` is stopped. Waits until another thread,
// if there is one, has moved to them.
void hold_through_a_resize(Stage& stage, pid_t tid, std::uint64_t next_bytes) {
    const std::size_t maps = stage.testee().maps().size();
    stage.resize(next_bytes);
    emit_everywhere(stage, 1, 70);
    stage.holding().hold_while(tid,
                               [&stage, tid, maps] { return !another_is_there(stage, tid, maps); });
}

// Moves both CPUs to buffers of `first_bytes`. Holds the first thread that reaches the `k`-th step
// of the move: a served attach or an mmap.
void move_apart(Stage& stage, std::uint64_t k, std::uint64_t first_bytes,
                std::uint64_t next_bytes) {
    struct Way {
        std::map<pid_t, std::uint64_t> steps;
        bool has_held = false;
    };
    const auto way = std::make_shared<Way>();
    const auto step = [&stage, way, k, next_bytes](pid_t tid) {
        if (way->has_held || ++way->steps[tid] != k) return;
        way->has_held = true;
        hold_through_a_resize(stage, tid, next_bytes);
    };
    stage.hooks().set_on_attached([step](const Attached& attached) {
        if (attached.error == 0) step(attached.tid);
    });
    stage.hooks().set_on_mapped([step](const Mapped& mapped) { step(mapped.tid); });
    stage.resize(first_bytes);
    emit_everywhere(stage, 1, 70);
    stage.wait_asleep();
    stage.hooks().set_on_attached(nullptr);
    stage.hooks().set_on_mapped(nullptr);
}

// As move_apart, before the `k`-th system call after the attach, when the thread has released its
// locks. (The suite cannot wait within a call of the handler.)
class CallHold {
  public:
    explicit CallHold(Stage& stage) : stage_(stage) {
        stage.hooks().set_on_call([this](pid_t tid, long) {
            if (left_ == 0 || tid != attached_ || --left_ > 0) return false;
            held_ = tid;
            return true;
        });
    }
    ~CallHold() {
        stage_.hooks().set_on_call(nullptr);
        stage_.hooks().set_on_attached(nullptr);
        stage_.hooks().set_on_mapped(nullptr);
    }
    CallHold(const CallHold&) = delete;
    CallHold& operator=(const CallHold&) = delete;

    // Returns false if there was no such call before the mmap.
    bool move_apart(std::uint64_t k, std::uint64_t first_bytes, std::uint64_t next_bytes) {
        attached_ = held_ = 0;
        left_ = 0;
        stage_.hooks().set_on_attached([this, k](const Attached& attached) {
            if (attached.error != 0 || attached_ != 0) return;
            attached_ = attached.tid;
            left_ = k;
        });
        stage_.hooks().set_on_mapped([this](const Mapped& mapped) {
            if (mapped.tid == attached_) left_ = 0;
        });
        stage_.resize(first_bytes);
        emit_everywhere(stage_, 1, 70);
        stage_.waits().until_or_asleep([this] { return held_ != 0; }, 0);
        stage_.hooks().set_on_attached(nullptr);
        stage_.hooks().set_on_mapped(nullptr);
        left_ = 0;
        if (held_ != 0) hold_through_a_resize(stage_, held_, next_bytes);
        stage_.wait_asleep();
        return held_ != 0;
    }

  private:
    Stage& stage_;
    pid_t attached_ = 0;
    std::uint64_t left_ = 0;
    pid_t held_ = 0;
};

CaseOutcome attaches_of_two_capacities(Stage& stage) {
    constexpr std::uint64_t kSteps = 4;
    constexpr std::uint64_t kCalls = 8;
    set_up_cpus(stage, 2);
    const std::uint64_t bytes = stage.capacity_bytes();
    CallHold hold(stage);
    stage.start();
    stage.wait_asleep();
    for (std::uint64_t k = 1; k <= kSteps; ++k) {
        move_apart(stage, k, 2 * bytes, bytes);
        move_apart(stage, k, bytes, 2 * bytes);
    }
    for (std::uint64_t k = 1; k <= kCalls; ++k) {
        if (!hold.move_apart(k, 2 * bytes, bytes)) break;
    }
    return stage.finish();
}

CaseOutcome attach_in_the_boot_phase(Stage& stage) {
    constexpr int kTriesAtMost = 400;
    RingsSetup setup = stage.default_setup();
    setup.boot_capacity_bytes = 65536;
    stage.set_up(setup);
    emit_everywhere(stage, 5, 300);
    stage.start();
    // The consumer may exit at the first failure, which is correct.
    for (int i = 0; i < kTriesAtMost && stage.testee().attaches().size() < 3; ++i)
        stage.waits().let_run(5);
    emit_everywhere(stage, 5, 300);
    for (std::uint32_t cpu = 0; cpu < stage.cpus(); ++cpu) {
        stage.rings().hand_over(cpu, SwapSpec{stage.capacity_bytes(), PositionRule::keep, 0});
        emit_some(stage, cpu, 2, 100);
        stage.waits().let_run(2);
    }
    if (!stage.waits().mapped_or_exit()) return stage.ending().finish_any_exit();
    stage.waits().delivered();
    emit_everywhere(stage, 3, 100);
    stage.wait_asleep();
    return stage.finish();
}

const Row kInterruptedAttachRows[] = {
    {{"5.1.2/attach-in-the-boot-phase", must, "an attach before the hand-over",
      in_layout(
          "Start the consumer in the boot phase. Answer kmes_attach with {} until the last CPU "
          "is handed over. Emit events before, between and after.",
          name_of_error_before_rings()),
      "The consumer tries again until it succeeds and delivers what survives, or exits with a "
      "non-zero status."},
     attach_in_the_boot_phase},
    {{"E19/resize-at-every-step-of-an-attach", erratum, "a resize at every step of an attach",
      "While the consumer moves to a new buffer, replace that one, too: after each attach, after "
      "the mmap, before each access to the page in turn. Nudge retired buffers.",
      "The consumer ends up in the current buffer, loses nothing and delivers nothing twice."},
     {Asleep{}, resize_at_every_step_of_an_attach},
     {.cpus = 1, .before_start = {EmitEverywhere{3}}}},
    {{"E14/attaches-of-two-capacities", erratum, "two threads that attach at the same time",
      "While two CPUs move to new buffers, hold one thread after each attach and mmap in turn, and "
      "before each system call in between. Replace both buffers by larger or smaller ones, and let "
      "another thread move on to those.",
      "The consumer uses each buffer with the capacity of its own attach, and refuses and loses "
      "nothing."},
     attaches_of_two_capacities},
};

}  // namespace

const std::vector<Case> kInterruptedAttachCases = cases_of(kInterruptedAttachRows);

}  // namespace kmes::conformance
