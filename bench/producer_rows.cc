// SPDX-License-Identifier: MIT
//
// The cost of an emission: the floor, the core, and Producer in both modes, for single events and
// for batches of 64.
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/floor.h"
#include "bench/rows.h"
#include "kmes/user/platform.h"
#include "kmes/user/producer.h"

namespace kmes::bench {
namespace {

[[noreturn, gnu::noinline]] void fail(int error, const char* what) {
    throw std::runtime_error(std::string(what) + ": error " + std::to_string(error));
}

// Kept short, because it is part of the measured code.
inline void must_succeed(int error, const char* what) {
    if (error) [[unlikely]]
        fail(error, what);
}

// The core alone, on the platform of a single emitter.
class Core {
  public:
    Core(std::uint64_t payload_bytes, Clock clock)
        : payload_(payload_bytes), platform_(EmitterMode::kSingle, clock) {
        BufferOptions options;

        options.capacity_bytes = kCapacityBytes;
        memory_ = BufferMemory::create(options);
        kmes_cpu_init(&cpu_, 0, memory_->buffer(), platform_.platform(), 0);
        input_.type = kType.data();
        input_.type_len = static_cast<__u16>(kType.size());
        input_.payload = payload_.data();
        input_.payload_len = static_cast<__u32>(payload_.size());
    }

    void emit(std::uint64_t events) {
        for (std::uint64_t i = 0; i < events; i++)
            must_succeed(kmes_cpu_emit(&cpu_, &input_), "emit");
    }

    void emit_batches(std::uint64_t events) {
        for (std::uint64_t i = 0; i < events; i += kBatchEvents) {
            struct kmes_batch batch;

            kmes_batch_begin(&cpu_, &batch);
            for (std::uint64_t k = 0; k < kBatchEvents; k++)
                must_succeed(kmes_batch_emit(&cpu_, &batch, &input_), "batch");
            kmes_batch_end(&cpu_, &batch);
        }
    }

  private:
    std::vector<std::byte> payload_;
    CpuPlatform platform_;
    BufferHandle memory_;
    struct kmes_cpu cpu_ = {};
    struct kmes_event_input input_ = {};
};

// The whole producer, with all checks of the emit call.
class Whole {
  public:
    Whole(EmitterMode mode, std::uint64_t payload_bytes, Clock clock,
          Barrier barrier = Barrier::kFull)
        : payload_(payload_bytes) {
        ProducerOptions options;

        options.capacity_bytes = kCapacityBytes;
        options.emitters = mode;
        options.clock = clock;
        options.barrier = barrier;
        producer_ = std::make_unique<Producer>(options);
        must_succeed(producer_->start_without_registry(), "start");
        entries_.assign(kBatchEvents, {kType, payload_});
    }

    void emit(std::uint64_t events) {
        for (std::uint64_t i = 0; i < events; i++)
            must_succeed(producer_->emit(0, kType, payload_), "emit");
    }

    void emit_batches(std::uint64_t events) {
        for (std::uint64_t i = 0; i < events; i += kBatchEvents) {
            std::size_t emitted = 0;

            must_succeed(producer_->emit_batch(0, entries_, &emitted), "batch");
        }
    }

  private:
    std::vector<std::byte> payload_;
    std::unique_ptr<Producer> producer_;
    std::vector<BatchEntry> entries_;
};

// Each sample has warm-up laps, so that the ring of the variant is in the caches.
Variant variant(const std::string& name, std::uint64_t payload_bytes, const Effort& effort,
                std::function<void(std::uint64_t)> run) {
    const std::uint64_t lap = kCapacityBytes / record_bytes(payload_bytes) / kBatchEvents + 1;

    return {name, std::move(run), effort.warm_up_laps * lap * kBatchEvents,
            effort.sample_events / kBatchEvents * kBatchEvents};
}

}  // namespace

std::vector<Table> producer_tables(std::uint64_t payload_bytes, const Effort& effort) {
    std::shared_ptr<Floor> floor = make_floor(payload_bytes);
    auto core = std::make_shared<Core>(payload_bytes, effort.clock);
    auto single = std::make_shared<Whole>(EmitterMode::kSingle, payload_bytes, effort.clock);
    auto locked = std::make_shared<Whole>(EmitterMode::kLocked, payload_bytes, effort.clock);
    auto asymmetric = std::make_shared<Whole>(EmitterMode::kSingle, payload_bytes, effort.clock,
                                              Barrier::kAsymmetric);
    auto add = [&](const std::string& name, std::function<void(std::uint64_t)> run) {
        return variant(name, payload_bytes, effort, std::move(run));
    };

    return {
        {"one event",
         {add("floor", [=](std::uint64_t n) { floor->emit(n); }),
          add("kmes_cpu_emit", [=](std::uint64_t n) { core->emit(n); }),
          add("Producer::emit, single", [=](std::uint64_t n) { single->emit(n); }),
          add("Producer::emit, locked", [=](std::uint64_t n) { locked->emit(n); }),
          add("Producer::emit, asymmetric", [=](std::uint64_t n) { asymmetric->emit(n); })}},
        {"batch of 64",
         {add("floor", [=](std::uint64_t n) { floor->emit_batches(n); }),
          add("kmes_batch_emit", [=](std::uint64_t n) { core->emit_batches(n); }),
          add("Producer::emit_batch, single", [=](std::uint64_t n) { single->emit_batches(n); }),
          add("Producer::emit_batch, locked", [=](std::uint64_t n) { locked->emit_batches(n); }),
          add("Producer::emit_batch, asym.",
              [=](std::uint64_t n) { asymmetric->emit_batches(n); })}},
    };
}

}  // namespace kmes::bench
