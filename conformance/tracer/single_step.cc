// SPDX-License-Identifier: MIT
//
// Guards without page protections: the testee's threads run instruction by instruction, and the
// tracer examines each before it runs. For testees whose memory cannot be protected from outside,
// and to check guard pages. Knows stops and decoding.

#include <sys/ptrace.h>

#include <algorithm>

#include "conformance/tracer/engine.h"
#include "conformance/tracer/traced_calls.h"

namespace kmes::conformance {
namespace {

constexpr uint64_t kInNoCall = ~uint64_t{0};
// The accesses of a thread that are stepped before the others have a turn. A loop may consist of
// nothing else.
constexpr int kMostInOneTurn = 1000;

}  // namespace

bool Tracer::Engine::is_single_stepped(const Thread& thread) const {
    return stepping_.uses_steps() && is_testee(thread) && mappings_.any_guards();
}

const RingOperand* Tracer::Engine::guarded_operand(const PendingAccess& pending) {
    for (const RingOperand& operand : pending.operands) {
        const uint64_t last = operand.address + std::max(operand.size_bytes, 1u) - 1;
        if (mappings_.has_guard_for_load(operand.address) || mappings_.has_guard_for_load(last))
            return &operand;
    }
    return nullptr;
}

// Makes the thread's watchpoints cover the guarded metadata page. Without one, disarms them.
void Tracer::Engine::arm_watchpoints(Thread& thread) {
    stepping_.watchpoints().arm(thread.tid, thread.step.watched, mappings_.guarded_metadata_page());
}

// Returns whether the thread may execute its next instruction. If not, an event says why, or its
// turn is over. Records in the thread how to resume it.
bool Tracer::Engine::read_operands_before_step(Thread& thread) {
    thread.step.leaves_for_kernel =
        thread.now == StopKind::kEntry || thread.now == StopKind::kKernelEvent;
    // (A signal to be delivered runs its handler first.)
    if (thread.step.leaves_for_kernel || thread.now == StopKind::kGroup ||
        thread.signal.deliver != 0)
        return true;
    const pid_t tid = thread.tid;
    // (The next wait() continues a thread whose turn is over.)
    for (int turn = 0; turn < kMostInOneTurn; ++turn) {
        auto pending = load_next_instruction(thread);
        if (!pending) return true;
        thread.step.trap_flag.note_step_of(pending->code->instruction());
        if (stepping_.watchpoints().is_used()) {
            arm_watchpoints(thread);
            thread.step.watched.expected = pending->operands;
            thread.step.watched.place = pending->hit.code;
        }
        const Instruction& instruction = pending->code->instruction();
        // An interrupted call is repeated before anything else.
        if (pending->registers.orig_rax != kInNoCall &&
            is_restart_code(static_cast<int64_t>(pending->registers.rax))) {
            thread.step.leaves_for_kernel = true;
            return true;
        }
        thread.step.leaves_for_kernel = instruction.is_system_call;
        const RingOperand* operand = guarded_operand(*pending);
        if (operand == nullptr || instruction.never_faults) return true;
        pending->hit.address = operand->address;
        pending->hit.place = mappings_[operand->mapping].place_at(operand->address);
        thread.guard.pending = std::move(pending);
        if (!ask_about(thread)) return false;
        Thread* still = find(tid);
        // The instruction was stepped, here or by the handler. Examine the next one.
        if (still == nullptr || !tracees_.may_run(*still)) return false;
        if (!is_single_stepped(*still) || still->guard.pending || still->signal.deliver != 0)
            return true;
    }
    return false;
}

// Steps the instruction unchanged: no page is closed here.
GuardStep::Outcome Tracer::Engine::step_openly(Thread& thread, const PendingAccess& pending) {
    GuardStep::Outcome outcome = step_once(thread);
    if (outcome == GuardStep::Outcome::kDone)
        stepping_.watchpoints().check_step(thread.tid, thread.step.watched.page, pending.operands,
                                           pending.hit.code);
    if (outcome != GuardStep::Outcome::kOtherFault) return outcome;
    handle_signal(thread);
    return thread.queued_events != 0 ? GuardStep::Outcome::kWriteFault : outcome;
}

}  // namespace kmes::conformance
