// SPDX-License-Identifier: GPL-2.0-only
//
// The part of the player that compares: applies each operation to both sides, and then compares all
// visible state.
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>

#include "kmod/identity/player.h"

namespace kmes::identity {
namespace {

struct Number {
    const char* name;
    std::uint64_t userspace;
    std::uint64_t module;
};

std::string hexadecimal(std::uint64_t value) {
    char text[32];
    std::snprintf(text, sizeof(text), "0x%" PRIx64, value);
    return text;
}

}  // namespace

void Player::differ(unsigned cpu, const std::string& what) {
    if (!played_.difference)
        played_.difference = where_ + ": CPU " + std::to_string(cpu) + ": " + what;
}

std::int64_t Player::operate(CpuState& cpu_state, kmes_test_operation operation) {
    operation.cpu = cpu_state.cpu;
    kmes_test_operation module = operation;
    const std::int64_t in_userspace = userspace_.operate(operation);
    const std::int64_t in_module = module_.operate(module);
    plant();
    played_.operations++;
    if (in_userspace != in_module)
        differ(cpu_state.cpu, "returned " + std::to_string(in_module) + " in the module, " +
                                  std::to_string(in_userspace) + " in userspace");
    if (operation.verb == KMES_TEST_CALL_BATCH && operation.value != module.value)
        differ(cpu_state.cpu, "emitted " + std::to_string(module.value) + " in the module, " +
                                  std::to_string(operation.value) + " in userspace");
    const bool is_swapped = operation.verb == KMES_TEST_SWAP || operation.verb == KMES_TEST_CHANGE;
    // After a swap, the caller first adds the new buffer to both sides, and then compares.
    if (!is_swapped || in_userspace) check_all();
    return in_userspace;
}

void Player::write(CpuState& cpu_state, std::size_t buffer, std::uint64_t offset, const void* bytes,
                   std::uint64_t length) {
    kmes_test_operation operation{};
    operation.verb = KMES_TEST_WRITE;
    operation.buffer = static_cast<__u32>(buffer);
    operation.offset = offset;
    operation.payload_address = address_of(bytes);
    operation.bytes = length;
    operate(cpu_state, operation);
}

void Player::plant() {
    if (!plant_ || plant_->at_operation != played_.operations) return;
    const std::span<std::uint8_t> mapping = module_.mapping(0, cpu_states_[0].buffers - 1);
    const std::uint64_t offset = plant_->offset % mapping.size();
    const std::uint8_t other = mapping[offset] ^ 0x10;
    kmes_test_operation operation{};
    operation.verb = KMES_TEST_WRITE;
    operation.buffer = static_cast<__u32>(cpu_states_[0].buffers - 1);
    operation.offset = offset;
    operation.payload_address = address_of(&other);
    operation.bytes = 1;
    module_.operate(operation);
}

void Player::take_new_buffer(CpuState& cpu_state) {
    cpu_state.buffers++;
    cpu_state.true_sizes.clear();
    userspace_.take_new_buffer(cpu_state.cpu);
    module_.take_new_buffer(cpu_state.cpu);
    check_attach();
    check_all();
}

// Checks that an attach returns the current buffer of each CPU, or EAGAIN before the hand-over
// (5.1.2).
void Player::check_attach() {
    int error = 0;
    const std::vector<Descriptor> fds = module_.attach(&error);
    const bool is_boot = std::any_of(cpu_states_.begin(), cpu_states_.end(),
                                     [](const CpuState& cpu_state) { return cpu_state.is_boot; });
    if (error != (is_boot ? EAGAIN : 0))
        differ(0, "attach returns error " + std::to_string(error) +
                      (is_boot ? " in the boot phase" : " after the boot phase"));
    for (std::size_t cpu = 0; cpu < fds.size(); cpu++) {
        const std::size_t current = cpu_states_[cpu].buffers - 1;
        const DeviceMapping mapping(fds[cpu].get(), userspace_.state(cpu).capacity);
        if (mapping.inode() != module_.inode(cpu, current))
            differ(cpu, "attach does not return the current buffer");
        if (std::memcmp(mapping.bytes().data(), module_.mapping(cpu, current).data(),
                        mapping.bytes().size()))
            differ(cpu, "two mappings of the current buffer differ");
    }
}

void Player::check_all() {
    for (const CpuState& cpu_state : cpu_states_) {
        check_state(cpu_state.cpu);
        for (std::size_t buffer = 0; buffer < cpu_state.buffers; buffer++)
            check_mapping(cpu_state.cpu, buffer);
    }
}

void Player::check_state(unsigned cpu) {
    const kmes_test_state ours = userspace_.state(cpu);
    const kmes_test_state theirs = module_.state(cpu);
    const kmes_ioctl_statistics& mine = ours.statistics;
    const kmes_ioctl_statistics& other = theirs.statistics;
    const Number numbers[] = {
        {"capacity", ours.capacity, theirs.capacity},
        {"tail", ours.tail, theirs.tail},
        {"published", ours.published, theirs.published},
        {"frontier", ours.frontier, theirs.frontier},
        {"generation", ours.generation, theirs.generation},
        {"sequence", ours.sequence, theirs.sequence},
        {"futex_counter", ours.futex_counter, theirs.futex_counter},
        {"is_boot", cpu_states_[cpu].is_boot, theirs.is_boot},
        {"events", mine.events, other.events},
        {"bytes", mine.bytes, other.bytes},
        {"dropped", mine.dropped, other.dropped},
        {"dropped_nested", mine.dropped_nested, other.dropped_nested},
        {"overwritten", mine.overwritten, other.overwritten},
        {"wakes", mine.wakes, other.wakes},
        {"corrupt", mine.corrupt, other.corrupt},
        {"swaps", mine.swaps, other.swaps},
        {"left_behind", mine.left_behind, other.left_behind},
        {"last_sequence", ours.sequence, other.last_sequence},
        {"capacity in the statistics", ours.capacity, other.capacity},
    };
    for (const Number& number : numbers)
        if (number.userspace != number.module)
            differ(cpu, std::string(number.name) + " is " + std::to_string(number.module) +
                            " in the module, " + std::to_string(number.userspace) +
                            " in userspace");
}

void Player::check_mapping(unsigned cpu, std::size_t buffer) {
    const std::span<std::uint8_t> ours = userspace_.mapping(cpu, buffer);
    const std::span<std::uint8_t> theirs = module_.mapping(cpu, buffer);
    played_.bytes += ours.size();
    if (ours.size() != theirs.size()) return differ(cpu, "mappings of different lengths");
    if (std::memcmp(ours.data(), theirs.data(), ours.size()) == 0) return;
    const auto [mine, other] = std::mismatch(ours.begin(), ours.end(), theirs.begin());
    differ(cpu, "buffer " + std::to_string(buffer) + ", byte " +
                    std::to_string(mine - ours.begin()) +
                    " of the mapping: " + hexadecimal(*other) + " in the module, " +
                    hexadecimal(*mine) + " in userspace");
}

}  // namespace kmes::identity
