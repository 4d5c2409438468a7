// SPDX-License-Identifier: MIT
//
// Guards without page protections: the testee's threads run instruction by instruction, and the
// tracer examines each before it runs. For testees whose memory cannot be protected from outside,
// and to check guard pages. Knows stops and decoding.

#include <sys/ptrace.h>

#include <algorithm>

#include "conformance/tracer/engine.h"
#include "conformance/tracer/interest.h"

namespace kmes::conformance {
namespace {

constexpr uint64_t kInNoCall = ~uint64_t{0};

}  // namespace

bool Tracer::Engine::is_single_stepped(const Thread& thread) const {
    return stepping_ == Stepping::kSingleStep && is_testee(thread) && any_guards();
}

// From now on guards are address ranges. Call it only while there is no guard.
void Tracer::Engine::fall_back_to_single_steps(std::string reason) {
    stepping_ = Stepping::kSingleStep;
    stepping_reason_ = std::move(reason);
}

const RingOperand* Tracer::Engine::guarded_operand(const PendingAccess& pending) {
    for (const RingOperand& operand : pending.operands) {
        const uint64_t last = operand.address + std::max(operand.size_bytes, 1u) - 1;
        if (guarded_at(operand.address) != nullptr || guarded_at(last) != nullptr) return &operand;
    }
    return nullptr;
}

// Returns whether the thread may execute its next instruction. If not, an event says why. Records
// in the thread how to resume it.
bool Tracer::Engine::look_before_step(Thread& thread) {
    thread.leaves_for_kernel =
        thread.now == StopKind::kEntry || thread.now == StopKind::kKernelEvent;
    // (A signal to be delivered runs its handler first.)
    if (thread.leaves_for_kernel || thread.now == StopKind::kGroup || thread.deliver_signal != 0)
        return true;
    const pid_t tid = thread.tid;
    for (;;) {
        auto pending = load_next_instruction(thread);
        if (!pending) return true;
        thread.steps_pushf = pending->code->instruction().pushes_flags;
        thread.shows_trap_flag |= pending->code->instruction().takes_flags;
        if (checks_by_watchpoints_) {
            arm_watchpoints(thread);
            thread.step_operands = pending->operands;
            thread.step_place = pending->hit.code;
        }
        const Instruction& instruction = pending->code->instruction();
        // An interrupted call is repeated before anything else.
        if (pending->registers.orig_rax != kInNoCall &&
            is_restart_code(static_cast<int64_t>(pending->registers.rax))) {
            thread.leaves_for_kernel = true;
            return true;
        }
        thread.leaves_for_kernel = instruction.is_system_call;
        const RingOperand* operand = guarded_operand(*pending);
        if (operand == nullptr || instruction.never_faults) return true;
        pending->hit.address = operand->address;
        pending->hit.place = place_in(mappings_[operand->mapping], operand->address);
        thread.pending = std::move(pending);
        if (!ask_about(thread)) return false;
        Thread* still = find(tid);
        // The instruction was stepped, here or by the handler. Examine the next one.
        if (still == nullptr || !may_run(*still)) return false;
        if (!is_single_stepped(*still) || still->pending || still->deliver_signal != 0) return true;
    }
}

// Steps the instruction unchanged: no page is closed here.
GuardStep::Outcome Tracer::Engine::step_openly(Thread& thread, const PendingAccess& pending) {
    GuardStep::Outcome outcome = step_once(thread);
    if (outcome == GuardStep::Outcome::kDone)
        check_step(thread, pending.operands, pending.hit.code);
    if (outcome != GuardStep::Outcome::kOtherFault) return outcome;
    handle_signal(thread);
    return thread.queued_events != 0 ? GuardStep::Outcome::kWriteFault : outcome;
}

}  // namespace kmes::conformance
