// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * One CPU's producer in a test (world.h).
 */
#include "kmes/tests/world.h"

#include <algorithm>

namespace kmes::tests {
namespace {

__u64 clock_ns(void* context) {
    auto* world = static_cast<World*>(context);
    const std::function<void()> on_clock = world->on_clock; /* it may replace itself */
    if (on_clock) on_clock();
    return world->now_ns;
}

void queue_wake(void* context, kmes_buffer* buffer) {
    static_cast<World*>(context)->wakes.push_back(buffer);
}

int sleep_on(void* context, __u32* word, __u32 expected, __u64 timeout_ns) {
    auto* world = static_cast<World*>(context);
    const auto on_sleep = world->on_sleep; /* it may replace itself */
    return on_sleep ? on_sleep(word, expected, timeout_ns) : -EINTR;
}

int attach(void* context, __u16, kmes_mapping* mapping) {
    auto* world = static_cast<World*>(context);
    world->attaches++;
    if (world->on_attach) return world->on_attach(mapping);
    world->describe_current(mapping);
    return 0;
}

int identify(void* context, __u16, kmes_mapping* mapping) {
    auto* world = static_cast<World*>(context);
    if (world->on_identify) return world->on_identify(mapping);
    world->describe_current(mapping);
    return 0;
}

void detach(void* context, kmes_mapping*) {
    static_cast<World*>(context)->detaches++;
}

kmes_event_input sized_input(std::uint64_t event_bytes, const std::vector<char>& payload) {
    kmes_event_input input{};
    input.type = "t";
    input.type_len = 1;
    input.payload = payload.data();
    input.payload_len = static_cast<std::uint32_t>(event_bytes - KMES_EVENT_MIN_BYTES);
    return input;
}

}  // namespace

TestBuffer::TestBuffer(std::uint64_t capacity_bytes, std::uint64_t generation,
                       std::uint64_t start_pos, std::uint16_t cpu_id, std::uint64_t inode_number)
    : memory(capacity_bytes),
      index(kmes_index_entries(capacity_bytes), {~0ull, ~0ull}),
      inode(inode_number) {
    kmes_buffer_setup setup{};
    setup.mapping = memory.base();
    setup.index = index.data();
    setup.capacity_bytes = capacity_bytes;
    setup.generation = generation;
    setup.start_pos = start_pos;
    setup.version = KMES_VERSION_1;
    setup.cpu_id = cpu_id;
    register_memory(&memory);
    if (kmes_buffer_init(&buffer, &setup) != 0) std::abort();
}

TestBuffer::~TestBuffer() {
    unregister_memory(&memory);
}

std::vector<std::uint8_t> TestBuffer::survivors() const {
    settle_mirror();
    return memory.data_bytes(buffer.tail, buffer.frontier - buffer.tail);
}

World::World(const WorldSetup& setup) {
    platform.context = this;
    platform.clock_ns = clock_ns;
    platform.queue_wake = queue_wake;
    platform.sleep = sleep_on;
    buffers.push_back(std::make_unique<TestBuffer>(setup.capacity_bytes, setup.generation,
                                                   setup.start_pos, setup.cpu_id, next_inode_++));
    kmes_cpu_init(&cpu, setup.cpu_id, &buffers.back()->buffer, &platform, setup.last_sequence);
}

int World::emit(const std::string& type, const std::string& payload, std::uint8_t origin_class) {
    kmes_event_input input{};
    input.type = type.data();
    input.type_len = static_cast<std::uint16_t>(type.size());
    input.payload = payload.data();
    input.payload_len = static_cast<std::uint32_t>(payload.size());
    input.origin_class = origin_class;
    return kmes_cpu_emit(&cpu, &input);
}

int World::emit_sized(std::uint64_t event_bytes) {
    const std::vector<char> payload(event_bytes - KMES_EVENT_MIN_BYTES,
                                    static_cast<char>(cpu.sequence + 1));
    const kmes_event_input input = sized_input(event_bytes, payload);
    return kmes_cpu_emit(&cpu, &input);
}

int World::batch_emit_sized(const kmes_batch& batch, std::uint64_t event_bytes) {
    const std::vector<char> payload(event_bytes - KMES_EVENT_MIN_BYTES,
                                    static_cast<char>(cpu.sequence + 1));
    const kmes_event_input input = sized_input(event_bytes, payload);
    return kmes_batch_emit(&cpu, &batch, &input);
}

TestBuffer& World::make_buffer(std::uint64_t capacity_bytes) {
    buffers.push_back(
        std::make_unique<TestBuffer>(capacity_bytes, 0, 0, cpu.cpu_id, next_inode_++));
    return *buffers.back();
}

int World::swap(std::uint64_t capacity_bytes, enum kmes_swap_positions positions,
                std::uint64_t shift_bytes) {
    return kmes_swap_run(&cpu, &make_buffer(capacity_bytes).buffer, positions, shift_bytes);
}

TestBuffer& World::current() {
    return buffer_of(cpu.buffer);
}

TestBuffer& World::buffer_of(const kmes_buffer* buffer) {
    for (const auto& candidate : buffers) {
        if (&candidate->buffer == buffer) return *candidate;
    }
    std::abort();
}

std::size_t World::wakes_of(const TestBuffer& buffer) const {
    return static_cast<std::size_t>(std::count(wakes.begin(), wakes.end(), &buffer.buffer));
}

void World::describe_current(kmes_mapping* mapping) {
    TestBuffer& buffer = current();
    *mapping = {};
    mapping->base = buffer.memory.base();
    mapping->mapped_bytes = buffer.memory.mapped_bytes();
    mapping->device = 1;
    mapping->inode = buffer.inode;
    mapping->session = session;
}

kmes_reader_config World::reader_config() {
    kmes_reader_config config{};
    config.attach_functions = {attach, identify, detach, this};
    config.platform = &platform;
    config.sharing = KMES_EXCLUSIVE;
    config.cpu_id = cpu.cpu_id;
    return config;
}

Delivered Delivered::from(const kmes_event_view& view) {
    Delivered event{};
    event.sequence = view.sequence;
    event.timestamp = view.timestamp;
    event.lost_before = view.lost_before;
    event.cpu_id = view.cpu_id;
    event.origin_class = view.origin_class;
    event.type.assign(reinterpret_cast<const char*>(view.type), view.type_len);
    event.payload.assign(reinterpret_cast<const char*>(view.payload), view.payload_len);
    return event;
}

bool is_self_describing(const Delivered& event) {
    return event.type == "t" &&
           std::all_of(event.payload.begin(), event.payload.end(),
                       [&](char c) { return c == static_cast<char>(event.sequence); });
}

}  // namespace kmes::tests
