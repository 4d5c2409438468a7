// SPDX-License-Identifier: MIT
//
// The floor of an emission: what no producer of this protocol can leave out. It reads the clock,
// copies the record into the ring, reads the size of each event that it overwrites, and publishes
// with a full barrier. It keeps no statistics, checks nothing, and wakes nobody.
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
    // Writes them in batches of kBatchEvents: one clock reading and one barrier a batch.
    virtual void emit_batches(std::uint64_t records) = 0;
};

// For a payload of one of the sizes of kPayloadBytes; throws std::invalid_argument for another one.
// The capacity is a power of two.
std::unique_ptr<Floor> make_floor(std::uint64_t payload_bytes,
                                  std::uint64_t capacity_bytes = kCapacityBytes);

// For payloads of these sizes, repeated. The copy is as cheap as possible for sizes known only at
// run time.
std::unique_ptr<Floor> make_mixed_floor(const std::vector<std::uint64_t>& payload_bytes);

}  // namespace kmes::bench

#endif
