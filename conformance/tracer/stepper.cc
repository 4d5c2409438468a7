// SPDX-License-Identifier: MIT
//
// Executes a guarded access while its guards stay closed, by the first of three ways that works:
//
//   emulated     the runner executes the same instruction on its own mapping of the buffer, with
//                the thread's registers (transplant.h), and advances the instruction pointer.
//   redirected   the register with the address is changed to the hidden mapping for one single
//                step, and restored afterwards. For vectors, x87, pushes and calls.
//   protected    all threads are stopped, the guards opened for one step, and closed. For addresses
//                in rsp or rip, for registers that are address and value at once, and for whatever
//                faults, so that the testee gets exactly the signal of the kernel.
//
// Knows decoding, mappings and injection.

#include <sys/ptrace.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "conformance/tracer/engine.h"
#include "conformance/tracer/kernel_signals.h"
#include "conformance/tracer/memory.h"

namespace kmes::conformance {
namespace {

constexpr uint64_t kAlwaysSet = 2;  // a bit of the flags
constexpr uint64_t kResumeFlag = uint64_t{1} << 16;
constexpr uint64_t kCacheLineBytes = 64;
constexpr uint64_t kWordBytes = 8;
// The stops that are no trap, after which a step counts as impossible. A late interrupt is one.
constexpr int kMostOtherStops = 100;

// The changed register, and the distance.
struct Shift {
    int number = kNoRegister;
    uint64_t distance = 0;
};

bool is_general(int number) {
    return number >= 0 && number < kGeneralRegisters;
}

bool moves_by_itself(const Instruction& instruction, int number) {
    return instruction.string.kind != StringForm::Kind::kNone && (number == kRsi || number == kRdi);
}

// The register whose change moves this operand and nothing else.
int movable_register(const Instruction& instruction, const AddressForm& form) {
    int number = form.base;
    if (number == kNoRegister && form.scale == 1) number = form.index;
    if (form.is_32_bits || !is_general(number) || number == kRsp) return kNoRegister;
    if (form.base == form.index) return kNoRegister;
    const bool is_value = (instruction.values_read >> number & 1) != 0;
    if (is_value && !moves_by_itself(instruction, number)) return kNoRegister;
    return number;
}

bool uses(const AddressForm& form, int number) {
    return form.base == number || form.index == number;
}

// The changes of registers for all operands in a buffer; nothing if that is impossible.
std::optional<std::vector<Shift>> shifts_for(const PendingAccess& pending,
                                             const std::vector<uint64_t>& distances) {
    const Instruction& instruction = pending.code->instruction();
    // One register moves all elements of a gather, also those outside of buffers.
    if (pending.has_lanes_elsewhere) return std::nullopt;
    std::vector<Shift> shifts;
    std::vector<bool> is_moved(instruction.memory.size());
    for (size_t i = 0; i < pending.operands.size(); ++i) {
        const RingOperand& operand = pending.operands[i];
        const int number = movable_register(instruction, instruction.memory[operand.form]);
        if (!operand.is_inside || distances[i] == 0 || number == kNoRegister) return std::nullopt;
        const auto same = std::find_if(shifts.begin(), shifts.end(),
                                       [=](const Shift& shift) { return shift.number == number; });
        if (same == shifts.end()) {
            shifts.push_back({number, distances[i]});
        } else if (same->distance != distances[i]) {
            return std::nullopt;
        }
        is_moved[operand.form] = true;
    }
    for (const Shift& shift : shifts) {
        for (size_t form = 0; form < instruction.memory.size(); ++form) {
            const AddressForm& other = instruction.memory[form];
            const bool is_meant =
                is_moved[form] && movable_register(instruction, other) == shift.number;
            if (uses(other, shift.number) && !is_meant) return std::nullopt;
        }
    }
    if (shifts.empty()) return std::nullopt;
    return shifts;
}

// The value that the register would have if it had not been changed before the step.
uint64_t put_right(const Instruction& instruction, const Shift& shift, uint64_t before,
                   uint64_t after) {
    if ((instruction.written_whole >> shift.number & 1) != 0 &&
        !moves_by_itself(instruction, shift.number))
        return after;
    const uint64_t written = instruction.written_bits[shift.number];
    if (written != 0) return (before & ~written) | (after & written);
    return after - shift.distance;
}

// The code comes from a debug register that some machines do not set, about once in 300,000 steps.
// Then it says "breakpoint", and only the instruction shows whether it was one.
bool is_trap_of_a_step(const Thread& thread) {
    constexpr uint8_t kBreakpoint = 0xcc;
    if (thread.signal.info.si_code == TRAP_TRACE) return true;
    if (thread.signal.info.si_code <= 0) return false;
    const auto registers = read_registers(thread.tid);
    if (!registers) return false;
    const auto before = read_value<uint16_t>(thread.tid, registers->rip - sizeof(uint16_t));
    constexpr uint16_t kLongBreakpoint = 0x03cd;
    return before && *before != kLongBreakpoint && *before >> 8 != kBreakpoint;
}

bool is_sent_by_somebody(const siginfo_t& info) {
    return info.si_code <= 0;
}

}  // namespace

// Steps one instruction, with all signals blocked.
GuardStep::Outcome Tracer::Engine::step_once(Thread& thread) {
    prepare_for_faults(thread);
    uint64_t mask = 0;
    ptrace(PTRACE_GETSIGMASK, thread.tid, sizeof mask, &mask);
    const uint64_t blocked = kAllButFaults;
    ptrace(PTRACE_SETSIGMASK, thread.tid, sizeof blocked, &blocked);
    GuardStep::Outcome outcome = GuardStep::Outcome::kThreadGone;
    for (int stops = 0;; ++stops) {
        ptrace(PTRACE_SINGLESTEP, thread.tid, 0, 0);
        const auto status = wait_for_thread(thread.tid);
        if (!status) return GuardStep::Outcome::kThreadGone;
        if (*status >> 16 != 0 || WSTOPSIG(*status) == (SIGTRAP | 0x80)) {  // a late interrupt
            if (stops < kMostOtherStops) continue;
            note_no_return(thread);
            break;
        }
        thread.status = *status;
        classify(thread);
        const bool is_step = WSTOPSIG(*status) == SIGTRAP && is_trap_of_a_step(thread);
        outcome = is_step ? GuardStep::Outcome::kDone : GuardStep::Outcome::kOtherFault;
        break;
    }
    ptrace(PTRACE_SETSIGMASK, thread.tid, sizeof mask, &mask);
    return outcome;
}

bool Tracer::Engine::step_over(pid_t tid) {
    Thread* thread = find(tid);
    if (thread == nullptr || !thread->stopped || thread->queued_events != 0 || thread->in_backlog)
        return false;
    thread->guard.pending.reset();
    const auto registers = read_registers(tid);
    if (!registers) return false;
    const auto code = code_at(*thread, registers->rip);
    thread->step.trap_flag.note_taken_flags(code->instruction());
    const GuardStep::Outcome outcome = step_once(*thread);
    if (code->instruction().pushes_flags && outcome == GuardStep::Outcome::kDone)
        thread->step.trap_flag.clear_pushed(tid);
    // The next wait() handles it, where a handler may be called.
    if (outcome == GuardStep::Outcome::kOtherFault) stops_.put_off(*thread, thread->status);
    return outcome == GuardStep::Outcome::kDone;
}

// The thread continues after the instruction with these registers.
bool Tracer::Engine::finish_emulated(Thread& thread, const user_regs_struct& registers) {
    thread.guard.pending.reset();
    return write_registers(thread.tid, registers);
}

bool Tracer::Engine::emulate(Thread& thread, PendingAccess& pending, Torn* torn) {
    const Instruction& instruction = pending.code->instruction();
    if (pending.operands.size() != 1 || instruction.memory.size() != 1) return false;
    // Its routine takes addresses from registers (emulate_string).
    if (instruction.string.kind != StringForm::Kind::kNone) return false;
    const RingOperand& operand = pending.operands[0];
    const AddressForm& form = instruction.memory[0];
    const LiveMapping& live = mappings_[operand.mapping];
    if (!operand.is_inside || !live.mapping.shared || form.is_gather ||
        !may(live, operand.address, operand.size_bytes, form.is_write))
        return false;
    // The kernel may forbid the runner a locked access across cache lines.
    if (instruction.is_locked &&
        operand.address % kCacheLineBytes + operand.size_bytes > kCacheLineBytes)
        return false;
    const Routine routine = pending.code->routine(routines_of_this_thread());
    uint8_t* at = view_at(live, operand.address, operand.size_bytes);
    if (routine == nullptr || at == nullptr) return false;
    alignas(kCacheLineBytes) uint8_t copy[2 * kCacheLineBytes];
    if (torn != nullptr && operand.size_bytes <= kCacheLineBytes) {
        uint8_t* composed = copy + operand.address % kCacheLineBytes;
        torn->compose(at, composed, operand.size_bytes, false, operand.address, kWordBytes);
        at = composed;
    }
    user_regs_struct registers = pending.registers;
    registers.eflags = (registers.eflags & kArithmeticFlags) | kAlwaysSet;
    routine(&registers, at - bit_offset_bytes(form, pending.registers));
    registers.eflags = (pending.registers.eflags & ~(kArithmeticFlags | kResumeFlag)) |
                       (registers.eflags & kArithmeticFlags);
    registers.rip += instruction.length_bytes;
    return finish_emulated(thread, registers);
}

// Returns nothing if the instruction does not suit this way, or raised a signal that needs the
// testee's addresses. It has not been executed then.
std::optional<GuardStep::Outcome> Tracer::Engine::redirect(Thread& thread,
                                                           const PendingAccess& pending,
                                                           Torn* torn) {
    const Instruction& instruction = pending.code->instruction();
    std::vector<uint64_t> distances;
    for (const RingOperand& operand : pending.operands) {
        const LiveMapping& live = mappings_[operand.mapping];
        const bool is_write = instruction.memory[operand.form].is_write;
        if (!live.mapping.shared || !may(live, operand.address, operand.size_bytes, is_write))
            return std::nullopt;
        distances.push_back(live.hidden == 0 ? 0 : live.hidden - live.mapping.address);
    }
    if (torn == nullptr || pending.operands.empty()) return redirect_to(thread, pending, distances);
    const bool is_gather = instruction.memory[pending.operands[0].form].is_gather;
    return is_gather ? gather_in_parts(thread, pending, distances, *torn)
                     : redirect_to_copy(thread, pending, *torn);
}

std::optional<GuardStep::Outcome> Tracer::Engine::redirect_to(
    Thread& thread, const PendingAccess& pending, const std::vector<uint64_t>& distances) {
    const Instruction& instruction = pending.code->instruction();
    const auto shifts = shifts_for(pending, distances);
    if (!shifts) return std::nullopt;
    user_regs_struct registers = pending.registers;
    for (const Shift& shift : *shifts) register_of(registers, shift.number) += shift.distance;
    if (!write_registers(thread.tid, registers)) return GuardStep::Outcome::kThreadGone;
    const GuardStep::Outcome outcome = step_once(thread);
    if (outcome == GuardStep::Outcome::kThreadGone) return outcome;
    const auto after = read_registers(thread.tid);
    if (!after) return GuardStep::Outcome::kThreadGone;
    registers = *after;
    const bool is_done = outcome == GuardStep::Outcome::kDone;
    for (const Shift& shift : *shifts) {
        unsigned long long& value = register_of(registers, shift.number);
        value = is_done ? put_right(instruction, shift,
                                    register_of(pending.registers, shift.number), value)
                        : value - shift.distance;
    }
    if (!write_registers(thread.tid, registers)) return GuardStep::Outcome::kThreadGone;
    if (is_done) return outcome;
    if (!is_sent_by_somebody(thread.signal.info)) return std::nullopt;
    handle_signal(thread);
    return outcome;
}

GuardStep::Outcome Tracer::Engine::open_and_step(Thread& thread) {
    const bool was_frozen = tracees_.is_frozen();
    if (!freeze_all(Clock::now() + kFreezeLimit)) return GuardStep::Outcome::kThreadGone;
    GuardStep::Outcome outcome = GuardStep::Outcome::kThreadGone;
    if (set_guards(thread, false)) outcome = step_once(thread);
    if (outcome == GuardStep::Outcome::kOtherFault) {
        // Report it as any other signal of this thread; the guards close first.
        handle_signal(thread);
        const bool is_write_fault = thread.queued_events != 0;
        if (is_write_fault) outcome = GuardStep::Outcome::kWriteFault;
    }
    if (outcome != GuardStep::Outcome::kThreadGone) set_guards(thread, true);
    mappings_.note_open_guards(false);
    tracees_.set_frozen(was_frozen);
    return outcome;
}

GuardStep Tracer::Engine::step_guarded(pid_t tid, Torn* torn) {
    GuardStep step;
    step.outcome = GuardStep::Outcome::kThreadGone;
    Thread* thread = find(tid);
    if (thread == nullptr || !thread->guard.pending || !thread->stopped) return step;
    PendingAccess pending = std::move(*thread->guard.pending);
    thread->guard.pending.reset();
    step.accesses = pending.hit.accesses;
    const bool writes = std::any_of(step.accesses.begin(), step.accesses.end(),
                                    [](const BufferAccess& access) { return access.is_write; });
    if (torn != nullptr && writes) torn->give_up();
    Torn* const tears = writes ? nullptr : torn;
    step.value_before = buffers_.value_of(step.accesses.front());
    // The processor can witness only instructions that it executes itself.
    const bool is_witnessed = stepping_.watchpoints().is_used() && tears == nullptr;
    const bool is_emulated =
        !is_witnessed && (pending.string_elements != 0 ? emulate_string(*thread, pending, tears)
                                                       : emulate(*thread, pending, tears));
    std::optional<GuardStep::Outcome> redirected;
    if (!is_witnessed && !is_emulated) redirected = redirect(*thread, pending, tears);
    if (is_emulated) {
        step.way = GuardStep::Way::kEmulated;
        step.outcome = GuardStep::Outcome::kDone;
    } else if (redirected) {
        step.way = GuardStep::Way::kRedirected;
        step.outcome = *redirected;
    } else {
        if (torn != nullptr) torn->give_up();
        const bool is_open = stepping_.uses_steps();
        step.way = is_open ? GuardStep::Way::kStepped : GuardStep::Way::kProtected;
        step.outcome = is_open ? step_openly(*thread, pending) : open_and_step(*thread);
    }
    step.accesses = pending.hit.accesses;
    step.value_after = buffers_.value_of(step.accesses.front());
    if (torn != nullptr) step.split_bytes = static_cast<uint32_t>(torn->split_bytes());
    return step;
}

}  // namespace kmes::conformance
