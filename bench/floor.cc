// SPDX-License-Identifier: MIT
//
// See floor.h.
#include "bench/floor.h"

#include <time.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <utility>

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

// Writes records of the type `Record`, which has bytes() and data() of the next record, and next()
// after it was written.
template <typename Record>
class FloorOf : public Floor {
  public:
    FloorOf(std::uint64_t capacity_bytes, Record record)
        : capacity_bytes_(capacity_bytes), record_(std::move(record)) {
        BufferOptions options;

        options.capacity_bytes = capacity_bytes;
        memory_ = BufferMemory::create(options);
        data_ = memory_->buffer()->shared.data;
        shared_write_pos_ = reinterpret_cast<std::uint64_t*>(memory_->buffer()->shared.write_pos);
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
    void write_record(std::uint64_t timestamp_ns) {
        const std::uint32_t bytes = record_.bytes();

        while (write_pos_ + bytes - tail_ > capacity_bytes_) {
            std::uint32_t size;

            std::memcpy(&size, data_ + (tail_ & (capacity_bytes_ - 1)), sizeof(size));
            tail_ += size;
        }
        std::memcpy(record_.data(), &bytes, sizeof(bytes));
        std::memcpy(record_.data() + 8, &timestamp_ns, sizeof(timestamp_ns));
        std::memcpy(data_ + (write_pos_ & (capacity_bytes_ - 1)), record_.data(), bytes);
        write_pos_ += bytes;
        record_.next();
    }

    void publish() { __atomic_exchange_n(shared_write_pos_, write_pos_, __ATOMIC_SEQ_CST); }

    const std::uint64_t capacity_bytes_;
    BufferHandle memory_;
    Record record_;
    std::uint8_t* data_;
    std::uint64_t* shared_write_pos_;
    std::uint64_t write_pos_ = 0;
    std::uint64_t tail_ = 0;
};

// A size known to the compiler.
template <std::uint64_t kPayload>
class OneSize {
  public:
    OneSize() { record_.fill(0x5A); }
    static constexpr std::uint32_t bytes() { return record_bytes(kPayload); }
    std::uint8_t* data() { return record_.data(); }
    void next() {}

  private:
    std::array<std::uint8_t, record_bytes(kPayload)> record_;
};

class ManySizes {
  public:
    explicit ManySizes(const std::vector<std::uint64_t>& payload_bytes) {
        for (const std::uint64_t each : payload_bytes)
            bytes_.push_back(static_cast<std::uint32_t>(record_bytes(each)));
        record_.resize(*std::max_element(bytes_.begin(), bytes_.end()), 0x5A);
    }
    std::uint32_t bytes() const { return bytes_[next_]; }
    std::uint8_t* data() { return record_.data(); }
    void next() {
        if (++next_ == bytes_.size()) next_ = 0;
    }

  private:
    std::vector<std::uint32_t> bytes_;
    std::vector<std::uint8_t> record_;
    std::size_t next_ = 0;
};

template <std::uint64_t kPayload>
std::unique_ptr<Floor> one_size(std::uint64_t capacity_bytes) {
    return std::make_unique<FloorOf<OneSize<kPayload>>>(capacity_bytes, OneSize<kPayload>());
}

}  // namespace

std::unique_ptr<Floor> make_floor(std::uint64_t payload_bytes, std::uint64_t capacity_bytes) {
    switch (payload_bytes) {
        case 16:
            return one_size<16>(capacity_bytes);
        case 64:
            return one_size<64>(capacity_bytes);
        case 256:
            return one_size<256>(capacity_bytes);
        case 1024:
            return one_size<1024>(capacity_bytes);
        case 4096:
            return one_size<4096>(capacity_bytes);
        default:
            throw std::invalid_argument("no floor for this payload size");
    }
}

std::unique_ptr<Floor> make_mixed_floor(const std::vector<std::uint64_t>& payload_bytes) {
    return std::make_unique<FloorOf<ManySizes>>(kCapacityBytes, ManySizes(payload_bytes));
}

}  // namespace kmes::bench
