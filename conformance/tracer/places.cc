// SPDX-License-Identifier: MIT
//
// Addresses told for people: which file, which function, which instruction, how far from a mapping.
// Knows the table of mappings and /proc.

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

#include "conformance/tracer/decode.h"
#include "conformance/tracer/engine.h"
#include "conformance/tracer/memory.h"
#include "conformance/tracer/symbols.h"

namespace kmes::conformance {
namespace {

constexpr size_t kLongestInstruction = 15;
// Farther away than this an address has nothing to do with the mapping.
constexpr int64_t kNearBytes = int64_t{1} << 30;

DecodedInstruction decode_at(pid_t tid, const user_regs_struct& registers) {
    uint8_t code[kLongestInstruction];
    const size_t got = read_memory_prefix(tid, registers.rip, code, sizeof code);
    return decode_instruction(code, got, registers);
}

}  // namespace

std::string CodePlace::describe() const {
    std::string where =
        module.empty()
            ? fmt::format("{:#x}", instruction_pointer)
            : fmt::format("{}+{:#x}", module.substr(module.rfind('/') + 1), module_offset);
    if (!symbol.empty()) where += fmt::format(" ({})", symbol);
    return fmt::format("`{}` at {}", text.empty() ? "?" : text, where);
}

std::string Fault::describe() const {
    std::string line = fmt::format("SIG{}", sigabbrev_np(signal));
    if (has_address) line += fmt::format(" at address {:#x}", address);
    if (nearest_mapping) {
        if (distance_bytes == 0) {
            line += fmt::format(", inside the mapping of buffer {} at offset {:#x}",
                                nearest_mapping->buffer,
                                address - nearest_mapping->address + nearest_mapping->offset_bytes);
        } else {
            line += fmt::format(", {} bytes {} the mapping of buffer {}",
                                distance_bytes < 0 ? -distance_bytes : distance_bytes,
                                distance_bytes < 0 ? "before" : "behind the last byte of",
                                nearest_mapping->buffer);
        }
    }
    return line + ", by " + code_place.describe();
}

std::vector<MemoryOperand> tracing::operands_at(pid_t tid, const user_regs_struct& registers) {
    return decode_at(tid, registers).operands;
}

std::optional<NextInstruction> Tracer::Engine::next_instruction(pid_t tid) {
    const Thread* thread = find(tid);
    const auto registers =
        thread != nullptr && thread->stopped ? read_registers(tid) : std::nullopt;
    if (!registers) return std::nullopt;
    DecodedInstruction instruction = decode_at(tid, *registers);
    if (!instruction.valid) return std::nullopt;
    return NextInstruction{std::move(instruction.text), instruction.is_full_barrier,
                           instruction.is_system_call};
}

// Module and symbol of an address: a search through tables, so done once for each.
const CodePlace& Tracer::Engine::place_of_code(pid_t tid, uint64_t address) {
    const auto [found, is_new] = code_places_.try_emplace(address);
    CodePlace& place = found->second;
    if (!is_new) return place;
    place.instruction_pointer = address;
    for (const MapsEntry& entry : read_maps(tid)) {
        if (address < entry.start || address >= entry.end) continue;
        place.module = entry.path;
        place.module_offset = address - entry.start + entry.offset_bytes;
        if (entry.file.inode != 0) {
            place.symbol = symbol_at("/proc/" + std::to_string(tid) + "/root" + entry.path,
                                     place.module_offset);
        }
        break;
    }
    return place;
}

CodePlace Tracer::Engine::code_place(pid_t tid, const user_regs_struct& registers) {
    CodePlace place = place_of_code(tid, registers.rip);
    const DecodedInstruction instruction = decode_at(tid, registers);
    place.text = instruction.text;
    place.length_bytes = instruction.length_bytes;
    return place;
}

Fault Tracer::Engine::describe_fault(Thread& thread) {
    Fault fault;
    const siginfo_t& info = thread.signal_info;
    fault.signal = info.si_signo;
    fault.code = info.si_code;
    fault.tid = thread.tid;
    if (const auto registers = read_registers(thread.tid)) {
        fault.code_place = code_place(thread.tid, *registers);
    }
    // A code above 0 comes from the kernel; SI_KERNEL (a non-canonical address) carries none.
    fault.has_address = (fault.signal == SIGSEGV || fault.signal == SIGBUS ||
                         fault.signal == SIGILL || fault.signal == SIGFPE) &&
                        info.si_code > 0 && info.si_code != SI_KERNEL;
    if (!fault.has_address) return fault;
    fault.address = reinterpret_cast<uint64_t>(info.si_addr);
    int64_t best = kNearBytes;
    for (const LiveMapping& live : mappings_) {
        if (!live.live) continue;
        const auto before = static_cast<int64_t>(live.mapping.address - fault.address);
        const auto behind =
            static_cast<int64_t>(fault.address - live.mapping.address - live.mapping.length_bytes) +
            1;
        const int64_t distance = before > 0 ? -before : std::max<int64_t>(behind, 0);
        if (std::abs(distance) >= best) continue;
        best = std::abs(distance);
        fault.nearest_mapping = live.mapping;
        fault.distance_bytes = distance;
    }
    return fault;
}

}  // namespace kmes::conformance
