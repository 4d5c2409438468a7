// SPDX-License-Identifier: MIT
//
// Bytes of events in flight that a producer has not written yet (Written). The producers of the
// backends write an event in one step, so this takes the bytes that are not there yet out of the
// ring again, and puts them back before the event is published. Knows a backend and no history.
#ifndef KMES_CONFORMANCE_STAGE_HELD_BACK_H_
#define KMES_CONFORMANCE_STAGE_HELD_BACK_H_

#include <cstdint>
#include <vector>

#include "conformance/oracle/event.h"
#include "conformance/stage/ring_backend.h"

namespace kmes::conformance {

// Of one CPU; one reservation, or one batch.
class HeldBack {
  public:
    // Before the producer writes this event at `position` of `buffer`: keeps the bytes that are
    // there. Events of a batch in their order, with those that are dropped.
    void keep(const RingBackend& backend, BufferIndex buffer, std::uint64_t capacity_bytes,
              std::uint64_t position, const EventSpec& spec);
    // After the producer has written them: takes back what is not in the ring yet of the kept
    // events at `published` and after.
    void hold(RingBackend& backend, std::uint64_t published, BatchWritten written);
    // Before the publication: all of it is in the ring.
    void give(RingBackend& backend);
    bool is_holding() const { return !rests_.empty(); }

  private:
    struct Kept {
        BufferIndex buffer = 0;
        std::uint64_t position = 0;
        std::uint64_t offset_bytes = 0;  // in the mapping
        std::uint64_t header_bytes = 0;
        std::vector<std::uint8_t> before;
    };
    struct Rest {
        BufferIndex buffer = 0;
        std::uint64_t offset_bytes = 0;
        std::vector<std::uint8_t> bytes;
    };

    std::vector<Kept> kept_;
    std::vector<Rest> rests_;
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_HELD_BACK_H_
