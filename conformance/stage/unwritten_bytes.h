// SPDX-License-Identifier: MIT
//
// Simulates a producer that has not yet written some bytes of an unpublished event (Written). A
// backend writes an event in one step. This class then removes the bytes that should be missing
// from the ring, and writes them again before the publication.
#ifndef KMES_CONFORMANCE_STAGE_UNWRITTEN_BYTES_H_
#define KMES_CONFORMANCE_STAGE_UNWRITTEN_BYTES_H_

#include <cstdint>
#include <vector>

#include "conformance/oracle/event.h"
#include "conformance/stage/ring_backend.h"

namespace kmes::conformance {

// Belongs to one CPU. Holds back the bytes of one reservation, or of one batch.
class UnwrittenBytes {
  public:
    // Saves the bytes of the ring that the producer overwrites with this event at `position` of
    // `buffer`. To be called before each write: for the events of a batch in their order, also for
    // dropped ones.
    void save_old(const RingBackend& backend, BufferIndex buffer, std::uint64_t capacity_bytes,
                  std::uint64_t position, const EventSpec& spec);
    // Replaces the bytes that should be missing by the saved ones, in the saved events at position
    // `published` and after. To be called after the producer has written them.
    void remove(RingBackend& backend, std::uint64_t published, BatchWritten written);
    // Writes the missing bytes into the ring. To be called before the publication.
    void write_rest(RingBackend& backend);
    bool is_missing_any() const { return !rests_.empty(); }

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

#endif  // KMES_CONFORMANCE_STAGE_UNWRITTEN_BYTES_H_
