// SPDX-License-Identifier: MIT
//
// Stops a woken consumer at its accesses. Knows no case.
#include "conformance/play/access_step.h"

#include <fmt/format.h>

namespace kmes::conformance {

namespace {

// A thread that was stopped to set guards returns to its wait by itself. A wake before that would
// return EAGAIN without naming the word.
void let_it_block(Stage& stage) {
    constexpr int kChecksAtMost = 20;
    for (int check = 0; check < kChecksAtMost; ++check) {
        stage.waits().let_run(1);
        if (stage.testee().tracer().inspect().all_blocked) return;
    }
}

}  // namespace

bool act_at_step(Stage& stage, const AccessStep& step, std::uint64_t k) {
    stage.wait_asleep();
    std::uint64_t accesses = 0;
    std::uint64_t left = kStepAccessesAtMost;
    for (const std::uint32_t cpu : step.cpus) {
        if (stage.testee().has_ended(cpu))
            return false;  // refused: the judge decides whether that was correct
        stage.waits().until([&stage, cpu] { return has_mapped_current_buffer(stage, cpu); },
                            "an mmap of the current buffer");
        stage.guards().guard(cpu, step.first_page, step.pages, [&](const GuardHit& hit) {
            if (left-- == 0) return AtGuard::release;  // it spins
            if (++accesses == k) {
                step.act(hit);
                left = kStepAccessesAtMost;
            }
            return AtGuard::step;
        });
    }
    let_it_block(stage);
    step.wake();
    stage.wait_asleep();
    stage.guards().release();
    return accesses >= k;
}

void act_at_every_step(Stage& stage, const AccessStep& step, const WalkChoice& choice) {
    WalkLimit limit(stage);
    const auto play = [&](const AccessNumber& access) {
        if (choice.on_begin) choice.on_begin(access);
        return act_at_step(stage, step, access.number);
    };
    if (choice.only) {
        for (const AccessNumber& access : *choice.only) play(access);
        return;
    }
    std::uint64_t k = 1;
    for (; k < kStepAccessesAtMost && play({Counted::all, k}); ++k) {
        if (limit.is_over()) return;
    }
    if (k == kStepAccessesAtMost)
        stage.findings().played_in_part(
            fmt::format("the walk over the consumer's accesses ended at access {}", k - 1));
}

}  // namespace kmes::conformance
