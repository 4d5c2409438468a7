// SPDX-License-Identifier: MIT
//
// The cost of a reader on a full ring without a running producer: by copy, in bulk and in place. A
// memcpy of the same bytes is the comparison. Each pass reads the ring from its tail to its end.
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "bench/mapped_reader.h"
#include "bench/rows.h"
#include "kmes/reader.h"
#include "kmes/ring.h"
#include "kmes/user/platform.h"

namespace kmes::bench {
namespace {

constexpr std::uint64_t kRoomBytes = 256 << 10;

// A full ring, a reader on a consumer's mapping of it, and the private bytes that it copies to.
class FullRing {
  public:
    explicit FullRing(std::uint64_t payload_bytes)
        : room_(kRoomBytes), platform_(EmitterMode::kSingle, Clock()) {
        std::vector<std::byte> payload(payload_bytes);
        struct kmes_event_input input = {};
        struct kmes_cpu cpu = {};
        BufferOptions options;

        options.capacity_bytes = kCapacityBytes;
        memory_ = BufferMemory::create(options);
        kmes_cpu_init(&cpu, 0, memory_->buffer(), platform_.platform(), 0);
        input.type = kType.data();
        input.type_len = static_cast<__u16>(kType.size());
        input.payload = payload.data();
        input.payload_len = static_cast<__u32>(payload.size());
        while (memory_->buffer()->tail == 0) must(kmes_cpu_emit(&cpu, &input) == 0, "emit");
        events_ = memory_->buffer()->frontier_ordinal - memory_->buffer()->tail_ordinal;
        reader_ = std::make_unique<MappedReader>(memory_);
    }

    FullRing(const FullRing&) = delete;
    FullRing& operator=(const FullRing&) = delete;

    std::uint64_t events() const { return events_; }

    void map_again() { reader_->map_again(); }

    void copied(std::uint64_t events) {
        struct kmes_event_view view;

        passes(events, [&] {
            return kmes_reader_next(reader_->get(), room_.data(), room_.size(), &view) == 1;
        });
    }

    void bulk(std::uint64_t events) {
        std::array<struct kmes_event_view, 16> views;
        struct kmes_bulk bulk = {};
        std::uint32_t taken = 0, next = 0;

        passes(events, [&] {
            if (next++ < taken) return true;
            next = 1;
            taken = kmes_bulk_take(reader_->get(), &bulk, views.data(), views.size());
            if (taken > 0) return true;
            if (kmes_reader_bulk(reader_->get(), room_.data(), room_.size(), &bulk, nullptr) == 1)
                taken = kmes_bulk_take(reader_->get(), &bulk, views.data(), views.size());
            return taken > 0;
        });
    }

    // Reads each byte in place: the minimal work of a consumer that computes a digest.
    void in_place(std::uint64_t events) {
        struct kmes_event_view view;

        passes(events, [&] {
            if (kmes_reader_peek(reader_->get(), &view) != 1) return false;
            std::memcpy(room_.data(), view.payload, view.payload_len);
            return kmes_reader_release(reader_->get());
        });
    }

    // Copies the same bytes, record by record.
    void floor(std::uint64_t events) {
        const struct kmes_buffer* buffer = memory_->buffer();
        const std::uint64_t bytes = (buffer->frontier - buffer->tail) / events_;
        std::uint64_t pos = buffer->tail;

        for (std::uint64_t i = 0; i < events; i++) {
            std::memcpy(room_.data(), (*reader_)->shared.data + (pos & (kCapacityBytes - 1)),
                        bytes);
            asm volatile("" ::"r"(room_.data()) : "memory");
            pos += bytes;
            if (pos == buffer->frontier) pos = buffer->tail;
        }
    }

  private:
    // Reads `events` events, and starts at the tail again at the end of the ring.
    template <typename Read>
    void passes(std::uint64_t events, Read read) {
        for (std::uint64_t i = 0; i < events; i++) {
            if (read()) continue;
            (*reader_)->read_pos = memory_->buffer()->tail;
            (*reader_)->has_sequence = false;
            must(read(), "the ring is full");
        }
    }

    std::vector<std::byte> room_;
    CpuPlatform platform_;
    BufferHandle memory_;
    std::unique_ptr<MappedReader> reader_;
    std::uint64_t events_ = 0;
};

}  // namespace

std::vector<Table> reader_tables(std::uint64_t payload_bytes, const Effort& effort) {
    auto ring = std::make_shared<FullRing>(payload_bytes);
    const std::uint64_t lap = ring->events();
    auto steady = [&](const char* name, void (FullRing::*read)(std::uint64_t)) {
        return Variant{name, [=](std::uint64_t n) { ((*ring).*read)(n); },
                       effort.warm_up_laps * lap, lap};
    };
    // One sample is one pass over a fresh mapping, and includes the mmap.
    auto first = [&](const char* name, void (FullRing::*read)(std::uint64_t)) {
        return Variant{name,
                       [=](std::uint64_t n) {
                           ring->map_again();
                           ((*ring).*read)(n);
                       },
                       0, lap};
    };

    return {{"full ring, steady",
             {steady("memcpy", &FullRing::floor), steady("copied", &FullRing::copied),
              steady("bulk", &FullRing::bulk), steady("in place", &FullRing::in_place)}},
            {"full ring, first pass",
             {first("memcpy", &FullRing::floor), first("copied", &FullRing::copied),
              first("bulk", &FullRing::bulk), first("in place", &FullRing::in_place)}}};
}

}  // namespace kmes::bench
