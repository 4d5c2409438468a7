// SPDX-License-Identifier: MIT
//
// What an emission costs where the load has another shape than in producer_rows.cc: events of mixed
// sizes, several rings in turn, rings from the smallest to the largest.
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

// The payload sizes that a producer emits, again and again.
std::vector<std::uint64_t> uniform_sizes(std::uint64_t payload_bytes) {
    return std::vector<std::uint64_t>(kMixedEvents, payload_bytes);
}

// Four of five have half of the mean, the fifth has three times the mean, each give or take half of
// that. In random order, the same in every run.
std::vector<std::uint64_t> mixed_sizes(std::uint64_t mean_bytes) {
    std::vector<std::uint64_t> sizes;
    std::mt19937_64 random(1);

    while (sizes.size() < kMixedEvents) {
        const std::uint64_t middle = random() % 5 ? mean_bytes / 2 : mean_bytes * 3;

        sizes.push_back(middle / 2 + random() % (middle + 1));
    }
    return sizes;
}

// A producer whose events go to its rings in turn, in sizes that come from a list.
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

// Two tables over two emitters: singly, and in batches. What `warm_up` events write has been
// written before the first sample; before each further one come at most four samples.
template <typename First, typename Second>
std::vector<Table> tables(const std::string& first_name, std::shared_ptr<First> first,
                          const std::string& second_name, std::shared_ptr<Second> second,
                          std::uint64_t warm_up, const Effort& effort) {
    const std::uint64_t sample = effort.sample_events / kBatchEvents * kBatchEvents;
    const std::uint64_t again = std::min(warm_up, effort.warm_up_laps * sample);
    auto add = [=](const std::string& name, std::function<void(std::uint64_t)> run) {
        return Variant{name, std::move(run), again, sample};
    };

    first->emit_batches(warm_up);
    second->emit_batches(warm_up);
    return {{"one event",
             {add(first_name, [=](std::uint64_t n) { first->emit(n); }),
              add(second_name, [=](std::uint64_t n) { second->emit(n); })}},
            {"batch of 64",
             {add(first_name, [=](std::uint64_t n) { first->emit_batches(n); }),
              add(second_name, [=](std::uint64_t n) { second->emit_batches(n); })}}};
}

// Events, a multiple of a batch, that write `bytes` bytes and some more.
std::uint64_t events_over(std::uint64_t bytes, std::uint64_t payload_bytes) {
    return (bytes / record_bytes(payload_bytes) / kBatchEvents + 1) * kBatchEvents;
}

}  // namespace

std::vector<Table> mixed_tables(std::uint64_t mean_payload_bytes, const Effort& effort) {
    const auto emitter = [&](const std::vector<std::uint64_t>& sizes) {
        return std::make_shared<InTurn>(1, kCapacityBytes, sizes, effort.clock);
    };

    return tables("Producer, uniform sizes", emitter(uniform_sizes(mean_payload_bytes)),
                  "Producer, mixed sizes", emitter(mixed_sizes(mean_payload_bytes)),
                  effort.warm_up_laps * events_over(kCapacityBytes, mean_payload_bytes), effort);
}

std::vector<Table> rings_tables(std::uint64_t rings, const Effort& effort) {
    return tables(
        "floor", std::make_shared<Floors>(rings, kManyRingsCapacityBytes), "Producer, single",
        std::make_shared<InTurn>(static_cast<unsigned>(rings), kManyRingsCapacityBytes,
                                 uniform_sizes(kSmallPayloadBytes), effort.clock),
        effort.warm_up_laps * rings * events_over(kManyRingsCapacityBytes, kSmallPayloadBytes),
        effort);
}

std::vector<Table> capacity_tables(std::uint64_t capacity_bytes, const Effort& effort) {
    return tables("floor", std::make_shared<Floors>(1, capacity_bytes), "Producer, single",
                  std::make_shared<InTurn>(1, capacity_bytes, uniform_sizes(kSmallPayloadBytes),
                                           effort.clock),
                  events_over(capacity_bytes, kSmallPayloadBytes), effort);
}

}  // namespace kmes::bench
