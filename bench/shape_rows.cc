// SPDX-License-Identifier: MIT
//
// The cost of an emission under other loads than in producer_rows.cc: events of mixed sizes,
// several rings in turn, rings from the smallest to the largest.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bench/floor.h"
#include "bench/rows.h"
#include "kmes/user/producer.h"

namespace kmes::bench {
namespace {

constexpr std::uint64_t kSmallPayloadBytes = 64;
constexpr std::uint64_t kManyRingsCapacityBytes = 256 << 10;
constexpr std::uint64_t kMixedEvents = 4096;  // a multiple of kBatchEvents

// The payload sizes that a producer emits repeatedly.
std::vector<std::uint64_t> uniform_sizes(std::uint64_t payload_bytes) {
    return std::vector<std::uint64_t>(kMixedEvents, payload_bytes);
}

// Four of five sizes are half of the mean, the fifth is three times the mean; each varies by half
// of that. The order is random, and the same in every run.
std::vector<std::uint64_t> mixed_sizes(std::uint64_t mean_bytes) {
    std::vector<std::uint64_t> sizes;
    std::mt19937_64 random(1);

    while (sizes.size() < kMixedEvents) {
        const std::uint64_t middle = random() % 5 ? mean_bytes / 2 : mean_bytes * 3;

        sizes.push_back(middle / 2 + random() % (middle + 1));
    }
    return sizes;
}

// A producer whose events go to its rings in turn, with sizes from a list.
class InTurn {
  public:
    InTurn(unsigned rings, std::uint64_t capacity_bytes, const std::vector<std::uint64_t>& sizes,
           const Clock& clock)
        : rings_(rings), payload_(*std::max_element(sizes.begin(), sizes.end())) {
        ProducerOptions options;

        options.cpus = rings;
        options.boot_capacity_bytes = KMES_CONFIG_CAPACITY_MIN_BYTES;
        options.capacity_bytes = capacity_bytes;
        options.emitters = EmitterMode::kSingle;
        options.clock = clock;
        producer_ = std::make_unique<Producer>(options);
        must(producer_->start_without_registry() == 0, "start");
        for (const std::uint64_t size : sizes) {
            payloads_.push_back(std::span(payload_).first(size));
            entries_.push_back({kType, payloads_.back()});
        }
    }

    void emit(std::uint64_t events) {
        for (std::uint64_t i = 0; i < events; i++) {
            must(producer_->emit(next_ring_, kType, payloads_[next_payload_]) == 0, "emit");
            if (++next_payload_ == payloads_.size()) next_payload_ = 0;
            if (++next_ring_ == rings_) next_ring_ = 0;
        }
    }

    void emit_batches(std::uint64_t events) {
        for (std::uint64_t i = 0; i < events; i += kBatchEvents) {
            std::size_t emitted = 0;
            const auto batch = std::span(entries_).subspan(next_batch_, kBatchEvents);

            must(producer_->emit_batch(next_ring_, batch, &emitted) == 0, "batch");
            next_batch_ = (next_batch_ + kBatchEvents) % entries_.size();
            if (++next_ring_ == rings_) next_ring_ = 0;
        }
    }

  private:
    const unsigned rings_;
    std::vector<std::byte> payload_;
    std::vector<std::span<const std::byte>> payloads_;
    std::vector<BatchEntry> entries_;
    std::unique_ptr<Producer> producer_;
    std::size_t next_payload_ = 0;
    std::size_t next_batch_ = 0;
    unsigned next_ring_ = 0;
};

// Floors in turn.
class Floors {
  public:
    Floors(std::uint64_t rings, std::uint64_t capacity_bytes) {
        for (std::uint64_t i = 0; i < rings; i++)
            floors_.push_back(make_floor(kSmallPayloadBytes, capacity_bytes));
    }

    void emit(std::uint64_t events) {
        for (std::uint64_t i = 0; i < events; i++) {
            floors_[next_]->emit(1);
            if (++next_ == floors_.size()) next_ = 0;
        }
    }

    void emit_batches(std::uint64_t events) {
        for (std::uint64_t i = 0; i < events; i += kBatchEvents) {
            floors_[next_]->emit_batches(kBatchEvents);
            if (++next_ == floors_.size()) next_ = 0;
        }
    }

  private:
    std::vector<std::unique_ptr<Floor>> floors_;
    std::size_t next_ = 0;
};

// An emitting function, and the name of its row.
struct Emitting {
    std::string name;
    std::function<void(std::uint64_t events)> singly;
    std::function<void(std::uint64_t events)> in_batches;
};

template <typename Emitter>
Emitting emitting(const std::string& name, std::shared_ptr<Emitter> emitter) {
    return {name, [=](std::uint64_t n) { emitter->emit(n); },
            [=](std::uint64_t n) { emitter->emit_batches(n); }};
}

// Returns two tables: single events, and batches. Writes `warm_up` events before the first sample,
// and at most the events of four samples before each later one.
std::vector<Table> tables(const std::vector<Emitting>& rows, std::uint64_t warm_up,
                          const Effort& effort) {
    const std::uint64_t sample = effort.sample_events / kBatchEvents * kBatchEvents;
    const std::uint64_t again = std::min(warm_up, effort.warm_up_laps * sample);
    std::vector<Table> made = {{"one event", {}}, {"batch of 64", {}}};

    for (const Emitting& row : rows) {
        row.in_batches(warm_up);
        made[0].variants.push_back({row.name, row.singly, again, sample});
        made[1].variants.push_back({row.name, row.in_batches, again, sample});
    }
    return made;
}

// Returns the number of events, a multiple of a batch, that have at least `bytes` bytes.
std::uint64_t events_over(std::uint64_t bytes, std::uint64_t payload_bytes) {
    return (bytes / record_bytes(payload_bytes) / kBatchEvents + 1) * kBatchEvents;
}

}  // namespace

std::vector<Table> mixed_tables(std::uint64_t mean_payload_bytes, const Effort& effort) {
    const auto producer = [&](const std::string& name, const std::vector<std::uint64_t>& sizes) {
        return emitting(name, std::make_shared<InTurn>(1, kCapacityBytes, sizes, effort.clock));
    };
    const auto floor = [](const std::string& name, const std::vector<std::uint64_t>& sizes) {
        return emitting(name, std::shared_ptr<Floor>(make_mixed_floor(sizes)));
    };
    const std::vector<std::uint64_t> uniform = uniform_sizes(mean_payload_bytes);
    const std::vector<std::uint64_t> mixed = mixed_sizes(mean_payload_bytes);

    return tables(
        {producer("Producer, uniform sizes", uniform), producer("Producer, mixed sizes", mixed),
         floor("floor, uniform sizes", uniform), floor("floor, mixed sizes", mixed)},
        effort.warm_up_laps * events_over(kCapacityBytes, mean_payload_bytes), effort);
}

std::vector<Table> rings_tables(std::uint64_t rings, const Effort& effort) {
    return tables(
        {emitting("floor", std::make_shared<Floors>(rings, kManyRingsCapacityBytes)),
         emitting("Producer, single",
                  std::make_shared<InTurn>(static_cast<unsigned>(rings), kManyRingsCapacityBytes,
                                           uniform_sizes(kSmallPayloadBytes), effort.clock))},
        effort.warm_up_laps * rings * events_over(kManyRingsCapacityBytes, kSmallPayloadBytes),
        effort);
}

std::vector<Table> capacity_tables(std::uint64_t capacity_bytes, const Effort& effort) {
    return tables(
        {emitting("floor", std::make_shared<Floors>(1, capacity_bytes)),
         emitting("Producer, single",
                  std::make_shared<InTurn>(1, capacity_bytes, uniform_sizes(kSmallPayloadBytes),
                                           effort.clock))},
        events_over(capacity_bytes, kSmallPayloadBytes), effort);
}

}  // namespace kmes::bench
