// SPDX-License-Identifier: GPL-2.0-only
#include "kmod/identity/userspace.h"

#include <cerrno>
#include <cstring>
#include <stdexcept>

namespace kmes::identity {
namespace {

const void* pointer(std::uint64_t address) {
    return reinterpret_cast<const void*>(static_cast<std::uintptr_t>(address));
}

kmes_event_input input_of(const kmes_test_operation& operation) {
    kmes_event_input input{};
    input.type = pointer(operation.type_address);
    input.type_len = static_cast<__u16>(operation.type_len);
    input.payload = pointer(operation.payload_address);
    input.payload_len = static_cast<__u32>(operation.payload_len);
    input.origin_class = static_cast<__u8>(operation.origin_class);
    input.header_extra_len = operation.header_extra;
    return input;
}

// Fails for addresses in the first page, which the tests use as unmapped memory.
int fetch(void*, void* to, const void* from, __u64 bytes) {
    if (address_of(from) < 4096) return -EFAULT;
    std::memcpy(to, from, bytes);
    return 0;
}

}  // namespace

Userspace::Userspace(const InstanceOptions& options)
    : options_(options),
      clock_ns_(options.clock_ns),
      clock_step_ns_(options.clock_step_ns),
      staging_(options.max_event_size) {
    for (unsigned i = 0; i < options.cpus; i++) {
        auto cpu = std::make_unique<Cpu>();
        cpu->platform.context = this;
        cpu->platform.clock_ns = [](void* context) -> __u64 {
            auto* self = static_cast<Userspace*>(context);
            const std::uint64_t now = self->clock_ns_;
            self->clock_ns_ += self->clock_step_ns_;
            return now;
        };
        cpu->platform.queue_wake = [](void*, kmes_buffer*) {};
        cpu->cpu.cpu_id = static_cast<__u16>(options.first_cpu_id + i);
        BufferOptions memory;
        memory.capacity_bytes = options.capacity;
        memory.generation = options.is_boot ? 0 : 1;
        memory.start_position = options.position;
        memory.cpu_id = cpu->cpu.cpu_id;
        cpu->buffers.push_back(BufferMemory::create(memory));
        counted(kmes_buffer_init_called, 0);
        kmes_cpu_init(&cpu->cpu, memory.cpu_id, cpu->buffers[0]->buffer(), &cpu->platform,
                      options.sequence);
        counted(kmes_cpu_init_called, 0);
        cpus_.push_back(std::move(cpu));
    }
}

std::int64_t Userspace::counted(CoreOperation operation, std::int64_t result) {
    table_.count(operation, result);
    return result;
}

// The caller's swap sets position and generation.
BufferHandle Userspace::make_buffer(const Cpu& cpu, std::uint64_t capacity) {
    BufferOptions memory;
    memory.capacity_bytes = capacity;
    memory.cpu_id = cpu.cpu.cpu_id;
    counted(kmes_buffer_init_called, 0);
    return BufferMemory::create(memory);
}

int Userspace::emit_entry(Cpu& cpu, const kmes_event_input& input) {
    const kmes_batch_entry entry{input.type, input.payload, input.type_len, input.payload_len};
    // Larger than each payload, so only the capacity limits an event.
    const kmes_batch_rules rules{.max_event_bytes = UINT64_MAX / 2,
                                 .origin_class = input.origin_class};
    __u32 emitted = 0;

    return kmes_batch_emit_entries(&cpu.cpu, &cpu.batch, &rules, &entry, 1, &emitted);
}

std::int64_t Userspace::emit(Cpu& cpu, const kmes_test_operation& operation) {
    const kmes_event_input input = input_of(operation);
    const bool is_call = operation.style == 1;
    if (operation.verb == KMES_TEST_ADD && operation.style == 2)
        return counted(kmes_batch_emit_entries_called, emit_entry(cpu, input));
    if (operation.verb == KMES_TEST_ADD)
        return is_call
                   ? counted(kmes_batch_emit_call_called,
                             kmes_batch_emit_call(&cpu.cpu, &cpu.batch, &input))
                   : counted(kmes_batch_emit_called, kmes_batch_emit(&cpu.cpu, &cpu.batch, &input));
    return is_call ? counted(kmes_cpu_emit_call_called, kmes_cpu_emit_call(&cpu.cpu, &input))
                   : counted(kmes_cpu_emit_called, kmes_cpu_emit(&cpu.cpu, &input));
}

std::int64_t Userspace::call(Cpu& cpu, kmes_test_operation& operation) {
    kmes_call call{};
    call.cpu = &cpu.cpu;
    call.staging = staging_.data();
    call.max_event_bytes = options_.max_event_size;
    call.fetch = fetch;
    call.origin_class = static_cast<__u8>(operation.origin_class);
    if (operation.verb == KMES_TEST_CALL)
        return counted(kmes_call_emit_called,
                       kmes_call_emit(&call, pointer(operation.type_address),
                                      static_cast<__u16>(operation.type_len),
                                      pointer(operation.payload_address),
                                      static_cast<__u32>(operation.payload_len)));
    __u32 emitted = 0;
    const auto* entries = static_cast<const kmes_emit_entry*>(pointer(operation.payload_address));
    const int result =
        kmes_call_emit_batch(&call, entries, static_cast<__u32>(operation.payload_len), &emitted);
    operation.value = emitted;
    return counted(kmes_call_emit_batch_called, result);
}

std::int64_t Userspace::batch(Cpu& cpu, const kmes_test_operation& operation) {
    if (operation.verb == KMES_TEST_BATCH) {
        kmes_batch_begin(&cpu.cpu, &cpu.batch);
        return counted(kmes_batch_begin_called, 0);
    }
    kmes_batch_end(&cpu.cpu, &cpu.batch);
    return counted(kmes_batch_end_called, 0);
}

std::int64_t Userspace::reservation(Cpu& cpu, const kmes_test_operation& operation) {
    switch (operation.verb) {
        case KMES_TEST_RESERVE: {
            const kmes_event_input input = input_of(operation);
            // A nested emission must not change the reservation that it interrupts.
            kmes_reservation fresh{};
            const int error = kmes_reserve(&cpu.cpu, &input, &fresh);
            if (!error) cpu.reservation = fresh;
            return counted(kmes_reserve_called, error);
        }
        case KMES_TEST_FILL:
            kmes_reservation_fill(&cpu.cpu, &cpu.reservation, static_cast<__u32>(operation.offset),
                                  pointer(operation.payload_address),
                                  static_cast<__u32>(operation.bytes));
            return counted(kmes_reservation_fill_called, 0);
        case KMES_TEST_COMMIT:
            kmes_commit(&cpu.cpu, &cpu.reservation);
            return counted(kmes_commit_called, 0);
        default:
            kmes_abandon(&cpu.cpu, &cpu.reservation);
            return counted(kmes_abandon_called, 0);
    }
}

std::int64_t Userspace::swap(Cpu& cpu, const kmes_test_operation& operation) {
    if (operation.verb == KMES_TEST_COPY)
        return counted(kmes_swap_copy_called, kmes_swap_copy(&cpu.swap));
    if (operation.verb == KMES_TEST_CHANGE)
        return counted(kmes_swap_finish_called, kmes_swap_finish(&cpu.swap));
    const auto positions = static_cast<kmes_swap_positions>(operation.positions);
    cpu.next = make_buffer(cpu, operation.capacity);
    if (operation.verb == KMES_TEST_SWAP)
        return counted(kmes_swap_run_called,
                       kmes_swap_run(&cpu.cpu, cpu.next->buffer(), positions, operation.shift));
    return counted(kmes_swap_begin_called, kmes_swap_begin(&cpu.swap, &cpu.cpu, cpu.next->buffer(),
                                                           positions, operation.shift));
}

std::int64_t Userspace::give_up(Cpu& cpu, const kmes_test_operation& operation) {
    if (operation.verb == KMES_TEST_RETIRE)
        return counted(kmes_cpu_retire_called, kmes_cpu_retire(&cpu.cpu));
    return counted(kmes_buffer_nudge_called,
                   kmes_buffer_nudge(&cpu.cpu, cpu.buffers.at(operation.buffer)->buffer()));
}

std::int64_t Userspace::operate(kmes_test_operation& operation) {
    Cpu& cpu = *cpus_.at(operation.cpu);
    switch (operation.verb) {
        case KMES_TEST_EMIT:
        case KMES_TEST_ADD:
            return operation.result = emit(cpu, operation);
        case KMES_TEST_CALL:
        case KMES_TEST_CALL_BATCH:
            return operation.result = call(cpu, operation);
        case KMES_TEST_BATCH:
        case KMES_TEST_END:
            return operation.result = batch(cpu, operation);
        case KMES_TEST_RESERVE:
        case KMES_TEST_FILL:
        case KMES_TEST_COMMIT:
        case KMES_TEST_ABANDON:
            return operation.result = reservation(cpu, operation);
        case KMES_TEST_SWAP:
        case KMES_TEST_PREPARE:
        case KMES_TEST_COPY:
        case KMES_TEST_CHANGE:
            return operation.result = swap(cpu, operation);
        case KMES_TEST_NUDGE:
        case KMES_TEST_RETIRE:
            return operation.result = give_up(cpu, operation);
        case KMES_TEST_CLOCK:
            clock_ns_ = operation.value;
            clock_step_ns_ = operation.offset;
            return operation.result = 0;
        case KMES_TEST_WRITE:
            std::memcpy(mapping(operation.cpu, operation.buffer).data() + operation.offset,
                        pointer(operation.payload_address), operation.bytes);
            return operation.result = 0;
        default:
            throw std::logic_error("the producer in this process has no such verb");
    }
}

kmes_test_state Userspace::state(unsigned number) {
    const Cpu& cpu = *cpus_.at(number);
    const kmes_buffer& buffer = *cpu.cpu.buffer;
    const struct kmes_statistics& counted = cpu.cpu.statistics;
    kmes_test_state state{};
    state.capacity = buffer.capacity;
    state.tail = buffer.tail;
    state.published = buffer.published;
    state.frontier = buffer.frontier;
    state.generation = buffer.generation;
    state.sequence = cpu.cpu.sequence;
    state.futex_counter = buffer.futex_counter;
    state.statistics.events = counted.events;
    state.statistics.bytes = counted.bytes;
    state.statistics.dropped = counted.dropped;
    // Includes nested emissions that have not got their sequence numbers yet.
    state.statistics.dropped_nested = counted.dropped_nested + cpu.cpu.nested_missed;
    state.statistics.overwritten = counted.overwritten;
    state.statistics.wakes = counted.wakes;
    state.statistics.corrupt = counted.corrupt;
    state.statistics.swaps = counted.swaps;
    state.statistics.left_behind = counted.left_behind;
    return state;
}

std::span<std::uint8_t> Userspace::mapping(unsigned cpu, std::size_t buffer) {
    BufferMemory& memory = *cpus_.at(cpu)->buffers.at(buffer);
    return {static_cast<std::uint8_t*>(memory.base()), memory.mapped_bytes()};
}

void Userspace::take_new_buffer(unsigned number) {
    Cpu& cpu = *cpus_.at(number);
    cpu.buffers.push_back(std::move(cpu.next));
}

}  // namespace kmes::identity
