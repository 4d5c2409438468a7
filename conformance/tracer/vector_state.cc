// SPDX-License-Identifier: MIT
//
// The layout of the extended state: the processor says where its parts are. Knows no buffers.

#include "conformance/tracer/vector_state.h"

#include <cpuid.h>
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstring>

namespace kmes::conformance::tracing {
namespace {

constexpr size_t kLargestState = 64 * 1024;
constexpr unsigned kStateLeaf = 0xd;
// Components of the extended state, and their content.
constexpr unsigned kUpperHalves = 2;    // bytes 16 to 31 of vectors 0 to 15
constexpr unsigned kOpmasks = 5;        // k0 to k7
constexpr unsigned kUpperQuarters = 6;  // bytes 32 to 63 of vectors 0 to 15
constexpr unsigned kHighVectors = 7;    // vectors 16 to 31
constexpr size_t kFirstVectors = 160;   // bytes 0 to 15 of vectors 0 to 15
constexpr size_t kPresentBits = 512;    // which components differ from their reset state

struct Component {
    size_t offset = 0;
    size_t size_bytes = 0;
};

Component component(unsigned number) {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    if (__get_cpuid_count(kStateLeaf, number, &a, &b, &c, &d) == 0) return {};
    return {b, a};
}

}  // namespace

std::optional<VectorState> VectorState::read(pid_t tid) {
    VectorState state;
    state.bytes_.resize(kLargestState);
    iovec vector{state.bytes_.data(), state.bytes_.size()};
    if (ptrace(PTRACE_GETREGSET, tid, NT_X86_XSTATE, &vector) != 0) return std::nullopt;
    state.bytes_.resize(vector.iov_len);
    return state;
}

bool VectorState::write(pid_t tid) const {
    iovec vector{const_cast<uint8_t*>(bytes_.data()), bytes_.size()};
    return ptrace(PTRACE_SETREGSET, tid, NT_X86_XSTATE, &vector) == 0;
}

std::optional<size_t> VectorState::place_of_vector(int number, uint32_t offset) const {
    constexpr int kLowVectors = 16;
    Component part;
    size_t place = 0;
    if (number >= kLowVectors) {
        part = component(kHighVectors);
        place = part.offset + static_cast<size_t>(number - kLowVectors) * 64 + offset;
    } else if (offset < 16) {
        return kFirstVectors + static_cast<size_t>(number) * 16 + offset;
    } else if (offset < 32) {
        part = component(kUpperHalves);
        place = part.offset + static_cast<size_t>(number) * 16 + (offset - 16);
    } else {
        part = component(kUpperQuarters);
        place = part.offset + static_cast<size_t>(number) * 32 + (offset - 32);
    }
    if (part.size_bytes == 0) return std::nullopt;
    return place;
}

uint64_t VectorState::load(size_t place, size_t bytes) const {
    uint64_t value = 0;
    if (place + bytes <= bytes_.size()) memcpy(&value, bytes_.data() + place, bytes);
    return value;
}

int64_t VectorState::index(const GatherForm& form, uint32_t element) const {
    const auto place = place_of_vector(form.index_vector, element * form.index_bytes);
    if (!place) return 0;
    const uint64_t value = load(*place, form.index_bytes);
    return form.index_bytes == 4 ? static_cast<int32_t>(value) : static_cast<int64_t>(value);
}

bool VectorState::is_masked_in(const GatherForm& form, uint32_t element) const {
    if (form.mask_is_opmask) {
        const Component opmasks = component(kOpmasks);
        if (opmasks.size_bytes == 0) return false;
        return (load(opmasks.offset + static_cast<size_t>(form.mask) * 8, 8) >> element & 1) != 0;
    }
    const auto place =
        place_of_vector(form.mask, (element + 1) * form.element_bytes - 1);  // its highest byte
    return place && (load(*place, 1) & 0x80) != 0;
}

void VectorState::set_mask(const GatherForm& form, uint32_t element, bool value) {
    const Component opmasks = component(kOpmasks);
    std::optional<size_t> place;
    uint8_t bit = 0x80;
    if (form.mask_is_opmask) {
        place = opmasks.offset + static_cast<size_t>(form.mask) * 8 + element / 8;
        bit = static_cast<uint8_t>(1u << (element % 8));
    } else {
        place = place_of_vector(form.mask, (element + 1) * form.element_bytes - 1);
    }
    if (!place || *place >= bytes_.size()) return;
    uint8_t& byte = bytes_[*place];
    byte = static_cast<uint8_t>(value ? byte | bit : byte & ~bit);
    // The component is no longer in its reset state.
    uint64_t present = load(kPresentBits, 8);
    present |= form.mask_is_opmask ? uint64_t{1} << kOpmasks : uint64_t{6};
    memcpy(bytes_.data() + kPresentBits, &present, sizeof present);
}

std::vector<uint64_t> gather_addresses(pid_t tid, const AddressForm& form, uint64_t base) {
    std::vector<uint64_t> addresses;
    const auto state = VectorState::read(tid);
    if (!state) return addresses;
    for (uint32_t i = 0; i < form.gather.elements; ++i) {
        if (!state->is_masked_in(form.gather, i)) continue;
        addresses.push_back(base +
                            static_cast<uint64_t>(state->index(form.gather, i)) * form.scale);
    }
    return addresses;
}

}  // namespace kmes::conformance::tracing
