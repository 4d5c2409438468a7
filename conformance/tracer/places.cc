// SPDX-License-Identifier: MIT
//
// Describes addresses for people: which file, function and instruction, and how far from a mapping.
// Knows the table of mappings and /proc.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>

#include <fmt/format.h>

#include "conformance/tracer/backtrace.h"
#include "conformance/tracer/calls.h"
#include "conformance/tracer/engine.h"
#include "conformance/tracer/memory.h"

namespace kmes::conformance {
namespace {

// An address farther away than this, or than the length of the mapping, is unrelated to it.
constexpr int64_t kNearBytes = int64_t{1} << 20;

}  // namespace

std::string Fault::describe() const {
    std::string line = fmt::format("SIG{}", sigabbrev_np(signal));
    if (has_address) line += fmt::format(" at address {:#x}", address);
    if (signal == SIGSEGV && code == SI_KERNEL) line += " at an address that is not canonical";
    if (removed_mapping) {
        line += fmt::format(
            ", in what was the mapping of buffer {} until it was removed, at offset "
            "{:#x}",
            removed_mapping->buffer,
            address - removed_mapping->address + removed_mapping->offset_bytes);
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

std::optional<CodePlace> Tracer::Engine::call_in_program(const Thread& thread,
                                                         const user_regs_struct& registers) {
    constexpr size_t kFrames = 32;
    // Back into the call, which may be the last instruction of its function.
    constexpr uint64_t kOneByte = 1;
    const auto status = read_status(thread.tid);
    const int signal_number = thread.signal_info.si_signo;
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

Fault Tracer::Engine::describe_fault(Thread& thread) {
    Fault fault;
    const siginfo_t& info = thread.signal_info;
    fault.signal = info.si_signo;
    fault.code = info.si_code;
    fault.tid = thread.tid;
    if (const auto registers = read_registers(thread.tid)) {
        fault.code_place = code_at(thread, registers->rip)->place;
        fault.stack = take_snapshot(thread.tid, *registers);
        fault.called_by = call_in_program(thread, *registers);
    }
    // A code above 0 comes from the kernel; SI_KERNEL (a non-canonical address) carries none.
    fault.has_address = (fault.signal == SIGSEGV || fault.signal == SIGBUS ||
                         fault.signal == SIGILL || fault.signal == SIGFPE) &&
                        info.si_code > 0 && info.si_code != SI_KERNEL;
    if (!fault.has_address) return fault;
    fault.address = reinterpret_cast<uint64_t>(info.si_addr);
    const auto was_here = [&fault](const LiveMapping& each) {
        return !each.live && fault.address - each.mapping.address < each.mapping.length_bytes;
    };
    const auto removed = std::find_if(mappings_.rbegin(), mappings_.rend(), was_here);
    if (removed != mappings_.rend() && mapping_at(fault.address) == nullptr) {
        fault.removed_mapping = removed->mapping;
        return fault;
    }
    int64_t best = std::numeric_limits<int64_t>::max();
    for (const LiveMapping& live : mappings_) {
        if (!live.live) continue;
        const auto before = static_cast<int64_t>(live.mapping.address - fault.address);
        const auto behind =
            static_cast<int64_t>(fault.address - live.mapping.address - live.mapping.length_bytes) +
            1;
        const int64_t distance = before > 0 ? -before : std::max<int64_t>(behind, 0);
        const auto near = std::max(kNearBytes, static_cast<int64_t>(live.mapping.length_bytes));
        if (std::abs(distance) >= std::min(best, near)) continue;
        best = std::abs(distance);
        fault.nearest_mapping = live.mapping;
        fault.distance_bytes = distance;
    }
    return fault;
}

}  // namespace kmes::conformance
