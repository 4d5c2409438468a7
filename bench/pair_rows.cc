// SPDX-License-Identifier: MIT
//
// A producer and a reader on two processors: the slowdown of the producer by the reader, and the
// time from the emission of an event until it is read. The reader copies in bulk, and pauses
// between two checks of an empty ring.
#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bench/mapped_reader.h"
#include "bench/rows.h"
#include "kmes/user/producer.h"

namespace kmes::bench {
namespace {

// A sample is longer than with one thread, because the reader must reach its speed first.
constexpr std::uint64_t kTimesLonger = 8;
constexpr std::uint64_t kMaxSampleBytes = 64 << 20;

// Each check of an empty ring takes the line of write_pos from the producer: with rests of 0.5 µs
// an emission took 1.6 to 5 times as long. A wake takes longer than this rest.
constexpr std::uint64_t kRestNs = 10'000;

void rest() {
    const std::uint64_t end_ns = now_ns() + kRestNs;

    while (now_ns() < end_ns) __builtin_ia32_pause();
}

class Pair {
  public:
    explicit Pair(std::uint64_t payload_bytes) : payload_(payload_bytes), room_(256 << 10) {
        entries_.assign(kBatchEvents, {kType, payload_});
        thread_ = std::thread([this] { read_until_stopped(); });
    }

    ~Pair() {
        is_ended_.store(true);
        thread_.join();
    }
    Pair(const Pair&) = delete;
    Pair& operator=(const Pair&) = delete;

    // Emits `events` events, with a reader or without one.
    void emit(std::uint64_t events, bool in_batches, bool is_read) {
        const Reading reading(*this, is_read);

        for (std::uint64_t done = 0; done < events; done += kBatchEvents) emit_some(in_batches);
    }

    // Emits until the reader has delivered this many events. Lost events do not count.
    void deliver(std::uint64_t events, bool in_batches) {
        const Reading reading(*this, true);
        const std::uint64_t wanted = delivered_.load(std::memory_order_relaxed) + events;

        while (delivered_.load(std::memory_order_relaxed) < wanted) emit_some(in_batches);
    }

  private:
    // The reader reads while this object exists. It begins with the next event.
    class Reading {
      public:
        Reading(Pair& pair, bool is_wanted) : pair_(pair), is_wanted_(is_wanted) {
            if (!is_wanted_) return;
            pair_.may_read_.store(true, std::memory_order_release);
            while (!pair_.is_reading_.load(std::memory_order_acquire)) rest();
        }
        ~Reading() {
            if (!is_wanted_) return;
            pair_.may_read_.store(false, std::memory_order_release);
            while (pair_.is_reading_.load(std::memory_order_acquire)) rest();
        }
        Reading(const Reading&) = delete;
        Reading& operator=(const Reading&) = delete;

      private:
        Pair& pair_;
        const bool is_wanted_;
    };

    void emit_some(bool in_batches) {
        if (in_batches) {
            std::size_t emitted = 0;

            must(ring_.producer->emit_batch(0, entries_, &emitted) == 0, "batch");
            return;
        }
        for (std::uint64_t i = 0; i < kBatchEvents; i++)
            must(ring_.producer->emit(0, kType, payload_) == 0, "emit");
    }

    bool read_some() {
        std::array<struct kmes_event_view, 16> views;
        struct kmes_bulk bulk = {};

        if (kmes_reader_bulk(ring_.reader->get(), room_.data(), room_.size(), &bulk, nullptr) != 1)
            return false;
        while (kmes_bulk_take(ring_.reader->get(), &bulk, views.data(), views.size()) > 0) continue;
        return true;
    }

    void read_until_stopped() {
        while (!is_ended_.load(std::memory_order_relaxed)) {
            if (!may_read_.load(std::memory_order_acquire)) {
                std::this_thread::yield();
                continue;
            }
            while (read_some()) continue;
            is_reading_.store(true, std::memory_order_release);
            while (may_read_.load(std::memory_order_acquire)) {
                if (!read_some()) rest();
                delivered_.store((*ring_.reader)->statistics.delivered, std::memory_order_relaxed);
            }
            is_reading_.store(false, std::memory_order_release);
        }
    }

    std::vector<std::byte> payload_;
    std::vector<std::byte> room_;
    ReadRing ring_;
    std::vector<BatchEntry> entries_;
    std::atomic<bool> may_read_ = false;
    std::atomic<bool> is_reading_ = false;
    std::atomic<bool> is_ended_ = false;
    alignas(64) std::atomic<std::uint64_t> delivered_ = 0;
    std::thread thread_;
};

}  // namespace

std::vector<Table> pair_tables(std::uint64_t payload_bytes, const Effort& effort) {
    const std::uint64_t sample_events = std::min(kTimesLonger * effort.sample_events,
                                                 kMaxSampleBytes / record_bytes(payload_bytes));
    auto pair = std::make_shared<Pair>(payload_bytes);
    auto table = [&](const char* name, bool in_batches) {
        auto add = [=](const char* what, std::function<void(std::uint64_t)> run) {
            return Variant{what, std::move(run), kBatchEvents, sample_events};
        };

        return Table{name,
                     {add("emitted, nobody reads",
                          [=](std::uint64_t n) { pair->emit(n, in_batches, false); }),
                      add("emitted, a reader polls",
                          [=](std::uint64_t n) { pair->emit(n, in_batches, true); }),
                      add("delivered", [=](std::uint64_t n) { pair->deliver(n, in_batches); })}};
    };

    return {table("one event", false), table("batch of 64", true)};
}

}  // namespace kmes::bench
