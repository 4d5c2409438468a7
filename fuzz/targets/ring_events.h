// SPDX-License-Identifier: MIT
//
// The events of one CPU of a producer, as a consumer in its process sees them. The reference reader
// has its own mapping, read-only where consumers may not write.
#ifndef KMES_FUZZ_TARGETS_RING_EVENTS_H_
#define KMES_FUZZ_TARGETS_RING_EVENTS_H_

#include <cstdint>
#include <string>

#include "kmes/reader.h"
#include "kmes/user/memory.h"
#include "kmes/user/producer.h"

namespace kmes::fuzz {

struct RingEvent {
    std::string type;
    std::string payload;
    std::uint64_t sequence = 0;
    std::uint64_t lost_before = 0;

    bool is_same(const RingEvent& other) const {
        return type == other.type && payload == other.payload;
    }
};

class RingEvents {
  public:
    RingEvents(Producer* producer, std::uint16_t cpu);
    // Reads from the files that a server has passed, until the next resize.
    RingEvents(Producer* producer, std::uint16_t cpu, int metadata_fd, int data_fd,
               std::uint64_t capacity_bytes);
    ~RingEvents();
    RingEvents(const RingEvents&) = delete;
    RingEvents& operator=(const RingEvents&) = delete;

    // Returns false if there is no event now.
    bool next(RingEvent* event);

  private:
    void open();
    static int attach(void* context, __u16 cpu, kmes_mapping* mapping);
    static int identify(void* context, __u16 cpu, kmes_mapping* mapping);
    static void detach(void* context, kmes_mapping* mapping);

    Producer* const producer_;
    const std::uint16_t cpu_;
    ConsumerMapping passed_;  // until it is attached to
    kmes_reader reader_ = {};
    std::uint8_t room_[64 << 10];
};

}  // namespace kmes::fuzz

#endif  // KMES_FUZZ_TARGETS_RING_EVENTS_H_
