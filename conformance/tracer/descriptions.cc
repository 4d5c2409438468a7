// SPDX-License-Identifier: MIT
//
// Describes addresses for people: file, function, instruction, and the distance to a mapping. Knows
// the table of mappings and /proc.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "conformance/tracer/backtrace.h"
#include "conformance/tracer/calls.h"
#include "conformance/tracer/engine.h"
#include "conformance/tracer/limited_access.h"
#include "conformance/tracer/memory.h"
#include "conformance/tracer/registers.h"

namespace kmes::conformance {
namespace {

// An address farther away than this, or than the length of the mapping, is unrelated to it.
constexpr int64_t kNearBytes = int64_t{1} << 20;

}  // namespace

std::string Fault::describe() const {
    std::string line = fmt::format("SIG{}", sigabbrev_np(signal));
    if (has_address) line += fmt::format(" at address {:#x}", address);
    if (is_in_rseq_area)
        line += " in the thread's rseq area (thread-local storage), which the kernel needs";
    else if (signal == SIGSEGV && code == SI_KERNEL)
        line += " at an address that is not canonical";
    if (removed_mapping) {
        line +=
            fmt::format(", at offset {:#x} of what was the mapping of buffer {} until it was {}",
                        address - removed_mapping->address + removed_mapping->offset_bytes,
                        removed_mapping->buffer, removal ? removal->describe() : "removed");
        if (signal == SIGSEGV && code == SEGV_ACCERR)
            line += "; the address is now in another mapping";
    } else if (nearest_mapping && distance_bytes == 0) {
        line += fmt::format(", inside the mapping of buffer {} at offset {:#x}",
                            nearest_mapping->buffer,
                            address - nearest_mapping->address + nearest_mapping->offset_bytes);
    } else if (nearest_mapping) {
        const int64_t distance = std::abs(distance_bytes);
        line += fmt::format(
            ", {} byte{} {} the mapping of buffer {}", distance, distance == 1 ? "" : "s",
            distance_bytes < 0 ? "before" : "after the last byte of", nearest_mapping->buffer);
    }
    if (removal && !removed_mapping) line += ", in memory that was " + removal->describe();
    line += ", by " + code_place.describe();
    if (called_by)
        line += ", called from " + called_by->where();
    else
        line += caller_text(code_place, stack);
    return line;
}

std::optional<NextInstruction> Tracer::Engine::next_instruction(pid_t tid) {
    const Thread* thread = find(tid);
    const auto registers =
        thread != nullptr && thread->stopped ? read_registers(tid) : std::nullopt;
    if (!registers) return std::nullopt;
    const auto code = code_at(*thread, registers->rip);
    const Instruction& instruction = code->instruction();
    if (!instruction.is_valid) return std::nullopt;
    return NextInstruction{code->place, instruction.is_full_barrier, instruction.is_system_call};
}

// Call it while the thread is stopped at the entry of the call, with these registers.
CallSite Tracer::Engine::call_site(const Thread& thread, const user_regs_struct& registers) {
    return options_.keep_stacks ? site_with_stack(thread, registers) : CallSite{};
}

// The same for a call that is rare enough to keep the stack of each.
CallSite Tracer::Engine::site_with_stack(const Thread& thread, user_regs_struct registers) {
    registers.rip -= kSyscallInstructionBytes;
    return {code_at(thread, registers.rip)->place, take_snapshot(thread.tid, registers)};
}

std::optional<CodePlace> Tracer::Engine::call_in_program(const Thread& thread,
                                                         const user_regs_struct& registers,
                                                         int signal_number) {
    constexpr size_t kFrames = 32;
    // One byte before the return address is inside the call instruction, and so inside the function
    // even if the call is its last instruction.
    constexpr uint64_t kOneByte = 1;
    const auto status = read_status(thread.tid);
    if (!status || (status->caught_signals & signal_bit(signal_number)) != 0) return std::nullopt;
    const std::string program = program_of(thread.tid);
    ModuleTable modules;
    modules.entries = read_maps(thread.tid);
    const auto is_in_program = [&](uint64_t address) {
        const MapsEntry* entry = modules.find(address);
        return entry != nullptr && entry->executable && entry->path == program;
    };
    if (is_in_program(registers.rip)) return std::nullopt;
    const MapsEntry* place = modules.find(registers.rip);
    const bool has_code = place != nullptr && place->executable;
    // No table describes the frame of a call to an address without code. The call has just pushed
    // its return address.
    const std::vector<uint64_t> calls =
        has_code
            ? return_addresses(thread.tid, registers, kFrames)
            : std::vector<uint64_t>{read_value<uint64_t>(thread.tid, registers.rsp).value_or(0)};
    for (const uint64_t address : calls) {
        if (!is_in_program(address)) continue;
        return code_at(thread, address - kOneByte)->place;
    }
    return std::nullopt;
}

// Before a thread returns from the kernel, the kernel writes to its rseq area. If it cannot, it
// sends SIGSEGV without an address.
void Tracer::Engine::find_rseq_fault(Fault& fault) const {
    if (fault.signal != SIGSEGV || fault.code != SI_KERNEL) return;
    const uint64_t area = rseq_area_of(fault.tid);
    if (area == 0) return;
    ModuleTable modules;
    modules.entries = read_maps(fault.tid);
    const MapsEntry* entry = modules.find(area);
    if (modules.entries.empty() || (entry != nullptr && entry->writable)) return;
    fault.is_in_rseq_area = fault.has_address = true;
    fault.address = area;
}

// Before: the registers are the thread's own.
void Tracer::Engine::note_stuck(Thread& thread, const siginfo_t& info) {
    push(TracerTrouble{
        .tid = thread.tid,
        .what = "a call that the suite makes in a thread of the testee does not begin, because the "
                "thread faults again and again: " +
                describe_fault(thread, info).describe(),
        .reason = TracerTrouble::Reason::stuck});
}

// The thread runs, so its registers cannot be read.
void Tracer::Engine::note_no_return(const Thread& thread) {
    const auto status = read_status(thread.tid);
    push(TracerTrouble{
        .tid = thread.tid,
        .what = fmt::format("thread {} of the testee does not return from a call or a step that "
                            "the suite makes in it (state {})",
                            thread.tid, status ? status->state : '?'),
        .reason = TracerTrouble::Reason::stuck});
}

void Tracer::Engine::note_exceeded_limit() {
    push(TracerTrouble{
        .what = fmt::format("an access of the suite to memory of the testee took longer than {} s, "
                            "so the testee was killed. A thread that serves pages (userfaultfd) "
                            "cannot serve them while the suite has stopped it",
                            kAccessLimit.count()),
        .reason = TracerTrouble::Reason::not_followed});
}

Fault Tracer::Engine::describe_fault(const Thread& thread, const siginfo_t& info) {
    Fault fault;
    fault.signal = info.si_signo;
    fault.code = info.si_code;
    fault.tid = thread.tid;
    if (const auto registers = read_registers(thread.tid)) {
        fault.code_place = code_at(thread, registers->rip)->place;
        fault.stack = take_snapshot(thread.tid, *registers);
        fault.called_by = call_in_program(thread, *registers, fault.signal);
    }
    // A code above 0 comes from the kernel; SI_KERNEL (a non-canonical address) carries none.
    fault.has_address = (fault.signal == SIGSEGV || fault.signal == SIGBUS ||
                         fault.signal == SIGILL || fault.signal == SIGFPE) &&
                        info.si_code > 0 && info.si_code != SI_KERNEL;
    if (fault.has_address) fault.address = reinterpret_cast<uint64_t>(info.si_addr);
    find_rseq_fault(fault);
    if (!fault.has_address) return fault;
    const LiveMapping* removed = mappings_.removed_at(fault.address);
    const bool is_mapped = mappings_.at(fault.address) != nullptr;
    const bool is_removed = removed != nullptr && !is_mapped;
    const bool is_unmapped = fault.signal == SIGSEGV && fault.code == SEGV_MAPERR && !is_mapped;
    if (is_removed || is_unmapped) fault.removal = mappings_.removals().last_of(fault.address);
    if (is_removed) {
        fault.removed_mapping = removed->mapping;
        return fault;
    }
    int64_t best = std::numeric_limits<int64_t>::max();
    for (const LiveMapping& live : mappings_) {
        if (!live.live) continue;
        const auto before = static_cast<int64_t>(live.mapping.address - fault.address);
        const auto past_the_end =
            static_cast<int64_t>(fault.address - live.mapping.address - live.mapping.length_bytes) +
            1;
        const int64_t distance = before > 0 ? -before : std::max<int64_t>(past_the_end, 0);
        const auto near = std::max(kNearBytes, static_cast<int64_t>(live.mapping.length_bytes));
        if (std::abs(distance) >= std::min(best, near)) continue;
        best = std::abs(distance);
        fault.nearest_mapping = live.mapping;
        fault.distance_bytes = distance;
    }
    return fault;
}

}  // namespace kmes::conformance
