// SPDX-License-Identifier: MIT
//
// See interrupted_attach.h.
#include "conformance/play/interrupted_attach.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>

#include "conformance/play/play.h"

namespace kmes::conformance {

namespace {

// Replaces the buffer at the `k`-th step of the move. Returns false if there was no such step.
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

}  // namespace

void ResizeInAttach::operator()(Stage& stage) const {
    for (std::uint64_t k = 1; k <= steps_at_most && !stage.testee().has_ended(0); ++k) {
        if (!swap_at_step_of_attach(stage, k)) break;
    }
}

CaseOutcome HoldInAttach::operator()(Stage& stage) const {
    set_up_cpus(stage, 2);
    const std::uint64_t bytes = stage.capacity_bytes();
    CallHold hold(stage);
    stage.start();
    stage.wait_asleep();
    for (std::uint64_t k = 1; k <= steps; ++k) {
        move_apart(stage, k, 2 * bytes, bytes);
        move_apart(stage, k, bytes, 2 * bytes);
    }
    for (std::uint64_t k = 1; k <= calls; ++k) {
        if (!hold.move_apart(k, 2 * bytes, bytes)) break;
    }
    return stage.finish();
}

}  // namespace kmes::conformance
