// SPDX-License-Identifier: MIT
//
// String operations with one operand in guarded pages of a buffer: all elements up to the next page
// where a guard begins or ends count as one access, and are executed at once. The runner executes
// the operation itself, on its own mapping and a copy of the other operand, with the testee's
// count, direction and flags. Knows decoding and mappings.

#include <algorithm>
#include <cstring>

#include "conformance/tracer/engine.h"
#include "conformance/tracer/memory.h"

namespace kmes::conformance {
namespace {

constexpr uint64_t kMostBytes = uint64_t{1} << 20;
constexpr uint64_t kAlwaysSetInFlags = 2;
constexpr uint64_t kResumeFlagOfStep = uint64_t{1} << 16;
constexpr uint64_t kZeroFlag = 0x40;

bool goes_down(const user_regs_struct& registers) {
    return (registers.eflags & kDirectionFlag) != 0;
}

// The lowest address of `elements` elements, the first of which in time is at `first`.
uint64_t lowest(uint64_t first, uint64_t elements, uint32_t element_bytes, bool is_down) {
    return is_down ? first - (elements - 1) * element_bytes : first;
}

// Returns the thread's registers after `done` elements. `registers`: the runner's registers after
// the same elements.
user_regs_struct registers_after(const PendingAccess& pending, const user_regs_struct& registers,
                                 uint64_t done) {
    const Instruction& instruction = pending.code->instruction();
    const StringForm& string = instruction.string;
    const uint64_t bytes = done * string.element_bytes;
    user_regs_struct after = pending.registers;
    const uint64_t distance = goes_down(pending.registers) ? -bytes : bytes;
    if (string.has_source()) after.rsi += distance;
    if (string.has_destination()) after.rdi += distance;
    if (string.kind == StringForm::Kind::kLods) after.rax = registers.rax;
    if (string.repeats) after.rcx -= done;
    after.eflags = (after.eflags & ~(kArithmeticFlags | kResumeFlagOfStep)) |
                   (registers.eflags & kArithmeticFlags);
    const bool is_equal = (after.eflags & kZeroFlag) != 0;
    const bool is_over = !string.repeats || after.rcx == 0 ||
                         (string.stops_at_difference && !is_equal) ||
                         (string.stops_at_equality && is_equal);
    if (is_over) after.rip += instruction.length_bytes;
    return after;
}

}  // namespace

void Tracer::Engine::read_string_operands(PendingAccess& pending) {
    const Instruction& instruction = pending.code->instruction();
    const StringForm& string = instruction.string;
    if (pending.operands.size() != 1) return;
    const RingOperand& operand = pending.operands[0];
    const AddressForm& form = instruction.memory[operand.form];
    const LiveMapping& live = mappings_[operand.mapping];
    if (form.is_32_bits || form.segment != AddressForm::Segment::kFlat || !live.mapping.shared)
        return;
    const bool is_down = goes_down(pending.registers);
    const uint32_t size = string.element_bytes;
    uint64_t bytes = is_down ? live.guarded_bytes(operand.address + size, true)
                             : live.guarded_bytes(operand.address, false);
    if (form.is_write) {
        const uint64_t offset = live.place_at(operand.address).offset_bytes;
        if (!may(live, operand.address, size, true)) return;
        if (!is_down) bytes = std::min(bytes, kPageBytes - offset);
    }
    const uint64_t wanted = string.repeats ? pending.registers.rcx : 1;
    const uint64_t elements = std::min({wanted, bytes / size, kMostBytes / size});
    if (elements == 0) return;
    const uint64_t low = lowest(operand.address, elements, size, is_down);
    if (view_at(live, low, elements * size) == nullptr ||
        !may(live, low, elements * size, form.is_write))
        return;
    pending.string_elements = elements;
    BufferAccess& access = pending.hit.accesses[0];
    access.place = live.place_at(low);
    access.size_bytes = static_cast<uint32_t>(elements * size);
    access.value = buffers_.value_of(access);
}

// Returns false if nothing was executed; the next step then executes one element.
bool Tracer::Engine::emulate_string(Thread& thread, PendingAccess& pending, Torn* torn) {
    const Instruction& instruction = pending.code->instruction();
    const StringForm& string = instruction.string;
    const RingOperand& operand = pending.operands[0];
    const bool is_down = goes_down(pending.registers);
    const uint32_t size = string.element_bytes;
    uint64_t elements = pending.string_elements;
    const bool ring_is_destination = instruction.memory[operand.form].base == kRdi;
    const uint64_t low = lowest(operand.address, elements, size, is_down);
    uint8_t* ring = view_at(mappings_[operand.mapping], low, elements * size);
    const Routine routine = pending.code->routine(routines_of_this_thread());
    BufferAccess& access = pending.hit.accesses[0];
    access.place = mappings_[operand.mapping].place_at(operand.address);
    access.size_bytes = size;
    if (ring == nullptr || routine == nullptr) return false;

    // A copy of the other operand's elements.
    const int other = ring_is_destination ? kRsi : kRdi;
    const bool has_other = ring_is_destination ? string.has_source() : string.has_destination();
    const uint64_t other_first = register_of(pending.registers, other);
    const bool reads_other = has_other && (ring_is_destination || string.compares());
    std::vector<uint8_t> copy(has_other ? elements * size : 0);
    if (reads_other) {
        const uint64_t other_low = lowest(other_first, elements, size, is_down);
        const size_t got = read_memory_prefix(thread.tid, other_low, copy.data(), copy.size());
        if (got < copy.size() && is_down) return false;
        elements = got / size;
        if (elements == 0) return false;
    }
    // The bytes read from the ring may change in the middle.
    std::vector<uint8_t> composed;
    if (torn != nullptr && !instruction.memory[operand.form].is_write) {
        composed.resize(elements * size);
        const uint64_t skipped = is_down ? (pending.string_elements - elements) * size : 0;
        torn->compose(ring + skipped, composed.data(), composed.size(), is_down, 0, size);
        ring = composed.data();
    }
    user_regs_struct registers = pending.registers;
    registers.eflags = (registers.eflags & (kArithmeticFlags | kDirectionFlag)) | kAlwaysSetInFlags;
    registers.rcx = elements;
    const uint64_t first_at = is_down ? (elements - 1) * size : 0;
    const auto host = [first_at](uint8_t* at) { return reinterpret_cast<uint64_t>(at + first_at); };
    register_of(registers, ring_is_destination ? kRdi : kRsi) = host(ring);
    if (has_other) register_of(registers, other) = host(copy.data());
    routine(&registers, nullptr);
    const uint64_t done = string.repeats ? elements - registers.rcx : 1;
    if (done == 0) return false;
    if (string.kind == StringForm::Kind::kMovs && !ring_is_destination &&
        !write_memory(thread.tid, lowest(other_first, done, size, is_down), copy.data(),
                      done * size))
        return false;

    const user_regs_struct after = registers_after(pending, registers, done);
    if (!finish_emulated(thread, after)) return false;
    access.place =
        mappings_[operand.mapping].place_at(lowest(operand.address, done, size, is_down));
    access.size_bytes = static_cast<uint32_t>(done * size);
    return true;
}

}  // namespace kmes::conformance
