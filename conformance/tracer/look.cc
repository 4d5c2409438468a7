// SPDX-License-Identifier: MIT
//
// What the next instruction of a thread will touch in served buffers, and the current bytes there.
// The runner reads them from its own mappings, which have no guards. Knows decoding and mappings.

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "conformance/tracer/engine.h"
#include "conformance/tracer/vector_state.h"

namespace kmes::conformance {
namespace {

constexpr size_t kValueBytes = 8;

uint64_t round_to_pages(uint64_t length_bytes) {
    return (length_bytes + kPageBytes - 1) & ~(kPageBytes - 1);
}

}  // namespace

uint8_t* Tracer::Engine::view_of(BufferId id) {
    ServedFile& file = files_[id];
    if (file.view != nullptr) return file.view;
    const uint64_t length = file.layout_bytes();
    if (file.data_fd < 0) {
        void* kernels =
            mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, file.metadata_fd, 0);
        if (kernels != MAP_FAILED) file.view = static_cast<uint8_t*>(kernels);
        return file.view;
    }
    void* whole =
        mmap(nullptr, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (whole == MAP_FAILED) return nullptr;
    auto* at = static_cast<uint8_t*>(whole);
    const auto place = [](void* where, uint64_t bytes, int protection, int fd) {
        return mmap(where, bytes, protection, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
    };
    uint8_t* data = at + file.metadata_bytes;
    if (!place(at, file.metadata_bytes, PROT_READ | PROT_WRITE, file.metadata_fd) ||
        !place(data, file.capacity_bytes, PROT_READ, file.data_fd) ||
        !place(data + file.capacity_bytes, file.capacity_bytes, PROT_READ, file.data_fd)) {
        munmap(whole, length);
        return nullptr;
    }
    file.view = at;
    return at;
}

// Returns the runner's address of these bytes of the testee's mapping. Null if they are not in the
// metadata page or the two copies.
uint8_t* Tracer::Engine::view_at(const LiveMapping& live, uint64_t address, uint64_t size_bytes) {
    const uint64_t layout_bytes = files_[live.mapping.buffer].layout_bytes();
    const uint64_t offset = place_in(live, address).offset_bytes;
    if (offset >= layout_bytes || size_bytes > layout_bytes - offset) return nullptr;
    uint8_t* view = view_of(live.mapping.buffer);
    return view == nullptr ? nullptr : view + offset;
}

BufferPlace Tracer::Engine::place_in(const LiveMapping& live, uint64_t address) const {
    return {live.mapping.buffer, live.mapping.id,
            address - live.mapping.address + live.mapping.offset_bytes};
}

// The bytes in the buffer; the first 8 of a longer access.
uint64_t Tracer::Engine::buffer_value(const BufferAccess& access) {
    const uint64_t layout_bytes = files_[access.place.buffer].layout_bytes();
    const uint64_t offset = access.place.offset_bytes;
    const uint8_t* view = view_of(access.place.buffer);
    if (view == nullptr || offset >= layout_bytes) return 0;
    const size_t size_bytes =
        std::min<uint64_t>({access.size_bytes, kValueBytes, layout_bytes - offset});
    uint64_t value = 0;
    memcpy(&value, view + offset, size_bytes);
    return value;
}

// Whether the kernel would permit that access if there were no guards.
bool Tracer::Engine::may(const LiveMapping& live, uint64_t address, uint64_t size_bytes,
                         bool is_write) const {
    const uint64_t offset = place_in(live, address).offset_bytes;
    if (is_write) {
        const ServedFile& file = files_[live.mapping.buffer];
        return (live.mapping.protection & PROT_WRITE) != 0 && file.is_writable(offset) &&
               size_bytes <= file.metadata_bytes - offset;
    }
    return (live.mapping.protection & (PROT_READ | PROT_WRITE)) != 0;
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
        if (live == nullptr) live = mapping_at(byte);
    }
    if (live == nullptr) return;
    const uint64_t offset = address - live->mapping.address;
    const uint64_t length = round_to_pages(live->mapping.length_bytes);
    const bool is_inside = size_bytes != 0 && offset < length && size_bytes <= length - offset;
    pending.operands.push_back({form, address, size_bytes, live->mapping.id, is_inside});
    const AddressForm& shape = pending.code->instruction().memory[form];
    BufferAccess access{place_in(*live, address), size_bytes, shape.is_read, shape.is_write};
    access.value = buffer_value(access);
    pending.hit.accesses.push_back(access);
}

// The thread's next instruction; nothing if it cannot be read.
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
    if (instruction.string.kind != StringForm::Kind::kNone) look_at_string(pending);
    return pending;
}

}  // namespace kmes::conformance
