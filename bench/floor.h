// SPDX-License-Identifier: MIT
//
// The floor: the minimal work of an emission in this protocol. It reads the clock, copies the
// record into the ring, reads the size of each event that it overwrites, and publishes with a full
// barrier. It has no statistics, checks or wakes.
#ifndef KMES_BENCH_FLOOR_H
#define KMES_BENCH_FLOOR_H

#include <cstdint>
#include <memory>
#include <vector>

#include "bench/rows.h"

namespace kmes::bench {

// Records with a size known to the compiler, so that the copy is as cheap as possible.
class Floor {
  public:
    virtual ~Floor() = default;

    // Writes `records` records, each with its own clock reading and barrier.
    virtual void emit(std::uint64_t records) = 0;
    // Writes them in batches of kBatchEvents, each with one clock reading and one barrier.
    virtual void emit_batches(std::uint64_t records) = 0;
};

// Makes a floor for one of the sizes of kPayloadBytes. Throws std::invalid_argument for another
// one. The capacity is a power of two.
std::unique_ptr<Floor> make_floor(std::uint64_t payload_bytes,
                                  std::uint64_t capacity_bytes = kCapacityBytes);

// Makes a floor for payloads of these sizes, repeatedly. The copy is as cheap as possible for sizes
// known only at run time.
std::unique_ptr<Floor> make_mixed_floor(const std::vector<std::uint64_t>& payload_bytes);

}  // namespace kmes::bench

#endif
