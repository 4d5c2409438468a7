// SPDX-License-Identifier: MIT
//
// The backend with buffers in memory files of this process, to which the core of the suite writes.
// Compiled once for each form of the layout that has its own core: see ring_backend.h and
// core_forms.h.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstring>
#include <utility>

#include "conformance/stage/core_forms.h"
#include "kmes/user/memory.h"

namespace kmes::conformance {
namespace {

// Wakes all threads that wait on the word, and returns their number.
std::uint64_t wake_all(const void* word) {
    const long woken = syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    return woken > 0 ? static_cast<std::uint64_t>(woken) : 0;
}

class CoreBackend : public RingBackend {
  public:
    void create(const BackendSetup& setup, OnWake on_wake) override;

    void set_clock(std::uint64_t ns) override { clock_ns_ = ns; }
    int emit(std::uint32_t cpu, const kmes_event_input& input, EmitStyle style) override {
        return style == EmitStyle::kernel ? kmes_cpu_emit(core(cpu), &input)
                                          : kmes_cpu_emit_call(core(cpu), &input);
    }
    void batch_begin(std::uint32_t cpu) override {
        kmes_batch_begin(core(cpu), &producers_[cpu]->batch);
    }
    int batch_add(std::uint32_t cpu, const kmes_event_input& input) override {
        return kmes_batch_emit(core(cpu), &producers_[cpu]->batch, &input);
    }
    void batch_end(std::uint32_t cpu) override {
        kmes_batch_end(core(cpu), &producers_[cpu]->batch);
    }
    int reserve(std::uint32_t cpu, const kmes_event_input& input) override;
    void commit(std::uint32_t cpu) override {
        kmes_commit(core(cpu), &producers_.at(cpu)->reservation);
    }
    int swap(std::uint32_t cpu, std::uint64_t capacity_bytes, kmes_swap_positions positions,
             std::uint64_t shift_bytes) override {
        BufferMemory& memory = add_memory(capacity_bytes, cpu, 0, 0);
        return kmes_swap_run(core(cpu), memory.buffer(), positions, shift_bytes);
    }
    void outrun(std::uint32_t cpu, std::uint64_t laps, std::uint64_t events) override;
    int nudge(std::uint32_t cpu, BufferIndex buffer) override {
        return kmes_buffer_nudge(core(cpu), memories_.at(buffer)->buffer());
    }
    void set_waking(bool waking) override { is_waking_ = waking; }
    std::uint64_t wake(BufferIndex buffer) override {
        return wake_all(memories_.at(buffer)->futex_word());
    }
    void write(BufferIndex buffer, std::uint64_t offset,
               std::span<const std::uint8_t> bytes) override {
        std::memcpy(base(buffer) + offset, bytes.data(), bytes.size());
    }

    std::uint64_t buffers() const override { return memories_.size(); }
    std::uint8_t* base(BufferIndex buffer) const override {
        return static_cast<std::uint8_t*>(memories_.at(buffer)->base());
    }
    ProducerState state(BufferIndex buffer) const override;
    std::uint64_t wakes() const override { return wakes_; }
    ServedBuffer served(BufferIndex buffer) const override;

  private:
    // One CPU of the core, with its platform: the clock of the backend, and immediate wakes.
    struct Producer {
        explicit Producer(CoreBackend& backend);

        CoreBackend& owner;
        kmes_platform platform{};
        kmes_cpu cpu{};
        kmes_batch batch{};
        kmes_reservation reservation{};
    };

    kmes_cpu* core(std::uint32_t cpu) { return &producers_.at(cpu)->cpu; }
    BufferMemory& add_memory(std::uint64_t capacity_bytes, std::uint32_t cpu,
                             std::uint64_t start_position, std::uint64_t generation);

    std::vector<std::shared_ptr<BufferMemory>> memories_;
    std::vector<std::unique_ptr<Producer>> producers_;
    OnWake on_wake_;
    std::uint64_t least_file_bytes_ = 0;
    std::uint64_t clock_ns_ = 0;
    std::uint64_t wakes_ = 0;
    bool is_waking_ = true;
};

CoreBackend::Producer::Producer(CoreBackend& backend) : owner(backend) {
    platform.context = this;
    platform.clock_ns = [](void* context) -> __u64 {
        return static_cast<Producer*>(context)->owner.clock_ns_;
    };
    platform.queue_wake = [](void* context, kmes_buffer* buffer) {
        CoreBackend& backend = static_cast<Producer*>(context)->owner;
        if (!backend.is_waking_) return;
        ++backend.wakes_;
        backend.on_wake_(wake_all(buffer->shared.futex_counter));
    };
}

BufferMemory& CoreBackend::add_memory(std::uint64_t capacity_bytes, std::uint32_t cpu,
                                      std::uint64_t start_position, std::uint64_t generation) {
    BufferOptions options;
    options.capacity_bytes = capacity_bytes;
    options.cpu_id = static_cast<std::uint16_t>(cpu);
    options.start_position = start_position;
    options.generation = generation;
    options.metadata_file_bytes = std::max(kMetadataBytes + 2 * capacity_bytes, least_file_bytes_);
    options.allocate_pages = false;
    memories_.push_back(BufferMemory::create(options));
    return *memories_.back();
}

void CoreBackend::create(const BackendSetup& setup, OnWake on_wake) {
    on_wake_ = std::move(on_wake);
    least_file_bytes_ = setup.least_file_bytes;
    for (std::uint32_t cpu = 0; cpu < setup.cpus; ++cpu) {
        BufferMemory& memory = add_memory(setup.capacity_bytes, cpu, setup.start_positions.at(cpu),
                                          setup.first_generation);
        // Before a consumer can attach: the counter of a buffer that has woken often.
        memory.buffer()->futex_counter = setup.first_futex_counter;
        *memory.futex_word() = setup.first_futex_counter;
        producers_.push_back(std::make_unique<Producer>(*this));
        kmes_cpu_init(core(cpu), static_cast<__u16>(cpu), memory.buffer(),
                      &producers_[cpu]->platform, setup.last_sequence);
    }
}

int CoreBackend::reserve(std::uint32_t cpu, const kmes_event_input& input) {
    kmes_reservation& reservation = producers_.at(cpu)->reservation;
    const int result = kmes_reserve(core(cpu), &input, &reservation);
    if (result == 0)
        kmes_reservation_fill(core(cpu), &reservation, 0, input.payload, input.payload_len);
    return result;
}

// Sets the private state of the core and the positions in the page, as if it had written the
// events.
void CoreBackend::outrun(std::uint32_t cpu, std::uint64_t laps, std::uint64_t events) {
    kmes_buffer& buffer = *core(cpu)->buffer;
    core(cpu)->sequence += events;
    buffer.frontier_ordinal += events;
    buffer.tail_ordinal = buffer.frontier_ordinal;
    buffer.frontier += laps * buffer.capacity;
    buffer.tail = buffer.published = buffer.frontier;
    *buffer.shared.tail_pos = buffer.tail;
    *buffer.shared.write_pos = buffer.published;
    if (*buffer.shared.need_wake == 0) return;
    buffer.futex_counter += static_cast<std::uint32_t>(events);
    *buffer.shared.futex_counter = buffer.futex_counter;
}

ProducerState CoreBackend::state(BufferIndex index) const {
    const kmes_buffer& buffer = *memories_.at(index)->buffer();
    return {buffer.tail, buffer.published, buffer.futex_counter};
}

ServedBuffer CoreBackend::served(BufferIndex buffer) const {
    const BufferMemory& memory = *memories_.at(buffer);
    ServedBuffer served;
    served.metadata_fd = memory.metadata_fd();
    served.data_fd = memory.data_fd();
    served.capacity_bytes = memory.capacity_bytes();
    served.metadata_bytes = KMES_METADATA_BYTES;
    served.takes_only_whole_mapping = KMES_METADATA_BYTES > kPageBytes;
    return served;
}

}  // namespace

std::unique_ptr<RingBackend> make_core_backend_form_a() {
    return std::make_unique<CoreBackend>();
}

}  // namespace kmes::conformance
