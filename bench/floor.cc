// SPDX-License-Identifier: MIT
//
// See floor.h.
#include "bench/floor.h"

#include <time.h>

#include <array>
#include <cstring>
#include <stdexcept>

#include "bench/rows.h"
#include "kmes/user/memory.h"

namespace kmes::bench {
namespace {

std::uint64_t realtime_ns() {
    struct timespec now = {};

    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

template <std::uint64_t kPayload>
class SizedFloor : public Floor {
  public:
    explicit SizedFloor(std::uint64_t capacity_bytes) : capacity_bytes_(capacity_bytes) {
        BufferOptions options;
        const std::uint32_t bytes = kBytes;

        options.capacity_bytes = capacity_bytes;
        memory_ = BufferMemory::create(options);
        data_ = memory_->buffer()->shared.data;
        shared_write_pos_ = reinterpret_cast<std::uint64_t*>(memory_->buffer()->shared.write_pos);
        record_.fill(0x5A);
        std::memcpy(record_.data(), &bytes, sizeof(bytes));
    }

    void emit(std::uint64_t records) override {
        for (std::uint64_t i = 0; i < records; i++) {
            write_record(realtime_ns());
            publish();
        }
    }

    void emit_batches(std::uint64_t records) override {
        for (std::uint64_t i = 0; i < records; i += kBatchEvents) {
            const std::uint64_t timestamp_ns = realtime_ns();

            for (std::uint64_t k = 0; k < kBatchEvents; k++) write_record(timestamp_ns);
            publish();
        }
    }

  private:
    static constexpr std::uint64_t kBytes = record_bytes(kPayload);

    void write_record(std::uint64_t timestamp_ns) {
        while (write_pos_ + kBytes - tail_ > capacity_bytes_) {
            std::uint32_t size;

            std::memcpy(&size, data_ + (tail_ & (capacity_bytes_ - 1)), sizeof(size));
            tail_ += size;
        }
        std::memcpy(record_.data() + 8, &timestamp_ns, sizeof(timestamp_ns));
        std::memcpy(data_ + (write_pos_ & (capacity_bytes_ - 1)), record_.data(), kBytes);
        write_pos_ += kBytes;
    }

    void publish() { __atomic_exchange_n(shared_write_pos_, write_pos_, __ATOMIC_SEQ_CST); }

    const std::uint64_t capacity_bytes_;
    BufferHandle memory_;
    std::array<std::uint8_t, kBytes> record_;
    std::uint8_t* data_;
    std::uint64_t* shared_write_pos_;
    std::uint64_t write_pos_ = 0;
    std::uint64_t tail_ = 0;
};

}  // namespace

std::unique_ptr<Floor> make_floor(std::uint64_t payload_bytes, std::uint64_t capacity_bytes) {
    switch (payload_bytes) {
        case 16:
            return std::make_unique<SizedFloor<16>>(capacity_bytes);
        case 64:
            return std::make_unique<SizedFloor<64>>(capacity_bytes);
        case 256:
            return std::make_unique<SizedFloor<256>>(capacity_bytes);
        case 1024:
            return std::make_unique<SizedFloor<1024>>(capacity_bytes);
        case 4096:
            return std::make_unique<SizedFloor<4096>>(capacity_bytes);
        default:
            throw std::invalid_argument("no floor for this payload size");
    }
}

}  // namespace kmes::bench
