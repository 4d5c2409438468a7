// SPDX-License-Identifier: MIT
//
// Finds the operands of a thread's next instruction in served buffers, and their current bytes. The
// runner reads the bytes from its own mappings, which have no guards. Knows decoding and mappings.

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "conformance/tracer/engine.h"
#include "conformance/tracer/vector_state.h"

namespace kmes::conformance {
// Returns the runner's address of these bytes of the testee's mapping. Null if they are not in the
// metadata page or the two copies.
uint8_t* Tracer::Engine::view_at(const LiveMapping& live, uint64_t address, uint64_t size_bytes) {
    return buffers_.bytes_at(live.mapping.buffer, live.place_at(address).offset_bytes, size_bytes);
}

// Whether the kernel would permit that access if there were no guards.
bool Tracer::Engine::may(const LiveMapping& live, uint64_t address, uint64_t size_bytes,
                         bool is_write) const {
    const uint64_t offset = live.place_at(address).offset_bytes;
    if (is_write) {
        const ServedFile& file = buffers_.at(live.mapping.buffer);
        return live.permits(address, size_bytes, PROT_WRITE) && file.is_writable(offset) &&
               size_bytes <= file.metadata_bytes - offset;
    }
    return live.permits(address, size_bytes, readable_protections());
}

std::shared_ptr<const Code> Tracer::Engine::code_at(const Thread& thread, uint64_t address) {
    if (is_testee(thread)) return code_.at(thread.tid, address);
    CodeTable other;
    return other.at(thread.tid, address);
}

// Adds an operand of the instruction if it touches a served buffer.
void Tracer::Engine::add_operand(PendingAccess& pending, size_t form, uint64_t address,
                                 uint32_t size_bytes) {
    const LiveMapping* live = nullptr;
    // An operand that begins before the mapping touches it with its last byte.
    for (const uint64_t byte : {address, address + std::max(size_bytes, 1u) - 1}) {
        if (live == nullptr) live = mappings_.at(byte);
    }
    if (live == nullptr) return;
    const uint64_t offset = address - live->mapping.address;
    const uint64_t length = whole_pages(live->mapping.length_bytes);
    const bool is_inside = size_bytes != 0 && offset < length && size_bytes <= length - offset;
    pending.operands.push_back({form, address, size_bytes, live->mapping.id, is_inside});
    const AddressForm& shape = pending.code->instruction().memory[form];
    BufferAccess access{live->place_at(address), size_bytes, shape.is_read, shape.is_write};
    access.value = buffers_.value_of(access);
    pending.hit.accesses.push_back(access);
}

// Returns the thread's next instruction; nothing if it cannot be read.
std::optional<PendingAccess> Tracer::Engine::load_next_instruction(const Thread& thread) {
    const auto registers = read_registers(thread.tid);
    if (!registers) return std::nullopt;
    PendingAccess pending;
    pending.registers = *registers;
    pending.code = code_at(thread, registers->rip);
    pending.hit.tid = thread.tid;
    pending.hit.code = pending.code->place;
    const Instruction& instruction = pending.code->instruction();
    if (instruction.string.repeats && registers->rcx == 0) return pending;
    for (size_t i = 0; i < instruction.memory.size(); ++i) {
        const AddressForm& form = instruction.memory[i];
        if (!form.is_computable) continue;
        const uint64_t address = address_of(instruction, form, *registers);
        if (!form.is_gather) {
            add_operand(pending, i, address, form.size_bytes);
            continue;
        }
        const std::vector<uint64_t> elements = gather_addresses(thread.tid, form, address);
        const size_t before = pending.operands.size();
        for (const uint64_t element : elements) add_operand(pending, i, element, form.size_bytes);
        pending.has_lanes_elsewhere = pending.operands.size() - before != elements.size();
    }
    if (instruction.string.kind != StringForm::Kind::kNone) read_string_operands(pending);
    return pending;
}

}  // namespace kmes::conformance
