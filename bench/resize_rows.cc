// SPDX-License-Identifier: MIT
//
// The delay of an emitter by a resize: the longest time between two of its events. The rings are
// full, and the new one has the same capacity, so that the methods are comparable.
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "bench/rows.h"
#include "kmes/user/producer.h"

namespace kmes::bench {
namespace {

constexpr std::uint64_t kResizePayloadBytes = 64;

// A ring with an emitter, and another thread that resizes it.
class Resized {
  public:
    virtual ~Resized() = default;
    virtual void emit() = 0;
    virtual void resize() = 0;
};

class OfProducer : public Resized {
  public:
    explicit OfProducer(std::uint64_t capacity_bytes)
        : capacity_bytes_(capacity_bytes), payload_(kResizePayloadBytes) {
        ProducerOptions options;

        options.capacity_bytes = capacity_bytes;
        producer_ = std::make_unique<Producer>(options);
        must(producer_->start_without_registry() == 0, "start");
    }

    void emit() override { must(producer_->emit(0, kType, payload_) == 0, "emit"); }
    void resize() override {
        must(producer_->resize(capacity_bytes_) == 0, "resize");
        producer_->nudge_due();  // frees retired buffers
    }

  private:
    const std::uint64_t capacity_bytes_;
    std::vector<std::byte> payload_;
    std::unique_ptr<Producer> producer_;
};

// The simple method: a resize copies all events under a lock. It has no readers.
class Naive : public Resized {
  public:
    explicit Naive(std::uint64_t capacity_bytes)
        : capacity_bytes_(capacity_bytes), memory_(map()), record_(bytes(), std::byte{0x5A}) {}
    ~Naive() override { munmap(memory_, capacity_bytes_); }
    Naive(const Naive&) = delete;
    Naive& operator=(const Naive&) = delete;

    void emit() override {
        std::lock_guard lock(mutex_);

        if (position_ + bytes() > capacity_bytes_) position_ = 0;
        std::memcpy(memory_ + position_, record_.data(), bytes());
        position_ += bytes();
    }
    void resize() override {
        std::byte* const fresh = map();
        std::byte* old = memory_;
        {
            std::lock_guard lock(mutex_);

            std::memcpy(fresh, memory_, capacity_bytes_);
            old = std::exchange(memory_, fresh);
        }
        munmap(old, capacity_bytes_);
    }

  private:
    static constexpr std::uint64_t bytes() { return record_bytes(kResizePayloadBytes); }
    std::byte* map() const {
        void* const memory = mmap(nullptr, capacity_bytes_, PROT_READ | PROT_WRITE,
                                  MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

        must(memory != MAP_FAILED, "mmap");
        return static_cast<std::byte*>(memory);
    }

    const std::uint64_t capacity_bytes_;
    std::mutex mutex_;
    std::byte* memory_;
    std::vector<std::byte> record_;
    std::uint64_t position_ = 0;
};

// A thread that emits during measurements.
class Emitter {
  public:
    Emitter(std::unique_ptr<Resized> ring, std::uint64_t capacity_bytes)
        : ring_(std::move(ring)), thread_([this, capacity_bytes] {
              for (std::uint64_t done = 0; done < capacity_bytes;
                   done += record_bytes(kResizePayloadBytes))
                  ring_->emit();
              emit_until_stopped();
          }) {
        while (!is_full_.load()) std::this_thread::yield();
    }
    ~Emitter() {
        is_ended_.store(true);
        thread_.join();
    }
    Emitter(const Emitter&) = delete;
    Emitter& operator=(const Emitter&) = delete;

    // Returns the longest pause during one resize, or during the same time without one.
    Sample pause(bool is_resized) {
        round_.fetch_add(1);
        while (answered_.load() != round_.load()) std::this_thread::yield();
        const std::uint64_t begin = now_ns();

        if (is_resized) {
            ring_->resize();
            took_ns_ = now_ns() - begin;
        } else {
            while (now_ns() - begin < took_ns_) continue;
        }
        round_.fetch_add(1);
        while (answered_.load() != round_.load()) std::this_thread::yield();
        return {static_cast<double>(longest_ns_), was_preempted_};
    }

  private:
    // Odd rounds are measured. The emitter answers a new round between two events.
    void emit_until_stopped() {
        std::uint64_t last = now_ns(), longest = 0;
        long before = preemptions();

        is_full_.store(true);
        while (!is_ended_.load(std::memory_order_relaxed)) {
            ring_->emit();
            const std::uint64_t now = now_ns();

            longest = std::max(longest, now - last);
            last = now;
            const unsigned round = round_.load(std::memory_order_relaxed);

            if (round == answered_.load(std::memory_order_relaxed)) continue;
            longest_ns_ = longest;
            was_preempted_ = preemptions() != before;
            longest = 0;
            before = preemptions();
            answered_.store(round);
            last = now_ns();
            if (!(round & 1)) rest_until(round);
            last = now_ns();
        }
    }
    // Sleeps between two measurements, to leave the processor to the resize.
    void rest_until(unsigned round) {
        while (round_.load() == round && !is_ended_.load()) std::this_thread::yield();
    }

    std::unique_ptr<Resized> ring_;
    std::atomic<bool> is_full_ = false;
    std::atomic<bool> is_ended_ = false;
    std::atomic<unsigned> round_ = 0;
    std::atomic<unsigned> answered_ = 0;
    std::uint64_t longest_ns_ = 0;  // the emitting thread writes these two
    bool was_preempted_ = false;
    std::uint64_t took_ns_ = 100'000;
    std::thread thread_;
};

}  // namespace

std::vector<Table> resize_tables(std::uint64_t capacity_bytes, const Effort&) {
    auto ours =
        std::make_shared<Emitter>(std::make_unique<OfProducer>(capacity_bytes), capacity_bytes);
    auto naive = std::make_shared<Emitter>(std::make_unique<Naive>(capacity_bytes), capacity_bytes);
    auto add = [](const char* name, std::shared_ptr<Emitter> emitter, bool is_resized) {
        Variant variant{name, {}};

        variant.take = [=] { return emitter->pause(is_resized); };
        return variant;
    };

    return {{"longest pause of an emitter",
             {add("Producer, no resize", ours, false), add("Producer::resize", ours, true),
              add("copy under a lock", naive, true)}}};
}

}  // namespace kmes::bench
