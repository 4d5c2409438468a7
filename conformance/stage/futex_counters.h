// SPDX-License-Identifier: MIT
//
// The futex_counter of each buffer: its value in the page, and the emission that moved it last. The
// value can be moved later than the publication of its event (5.1.7 step 9). Emits nothing.
#ifndef KMES_CONFORMANCE_STAGE_FUTEX_COUNTERS_H_
#define KMES_CONFORMANCE_STAGE_FUTEX_COUNTERS_H_

#include <cstdint>
#include <map>
#include <vector>

#include "conformance/oracle/history.h"
#include "conformance/stage/ring_backend.h"

namespace kmes::conformance {

class FutexCounters {
  public:
    // History and backend outlive this object. `first` is the initial value in the first buffers.
    // Later buffers begin at 0.
    FutexCounters(const History& history, RingBackend& backend, std::uint32_t first)
        : history_(history), backend_(backend), first_(first) {}

    // Returns the value in the page. Between rewind() and catch_up() the producer has a later
    // value.
    std::uint32_t of(BufferIndex buffer) const;

    // Records that this event of the CPU was published and may have moved the counter.
    void note_emission(std::uint32_t cpu, std::uint64_t sequence);
    // True if this event or a later one moved futex_counter to `expected`: a waiter that expects
    // this value has loaded it after the event.
    bool is_counted_before(std::uint32_t cpu, std::uint64_t sequence, std::uint32_t expected) const;

    // Stores this earlier value in the page, until catch_up().
    void rewind(BufferIndex buffer, std::uint32_t value);
    // Stores the producer's value in the page. Returns false if the page was not rewound.
    bool catch_up(BufferIndex buffer);

  private:
    // The last emission of a CPU that moved futex_counter.
    struct Counted {
        BufferIndex buffer = ~BufferIndex{0};
        std::uint32_t counter = 0;
        std::uint64_t sequence = 0;
    };
    void put(BufferIndex buffer, std::uint32_t value);

    const History& history_;
    RingBackend& backend_;
    std::uint32_t first_;
    std::vector<Counted> counted_;                  // by CPU
    std::map<BufferIndex, std::uint32_t> rewound_;  // the earlier values in the pages
};

}  // namespace kmes::conformance

#endif  // KMES_CONFORMANCE_STAGE_FUTEX_COUNTERS_H_
