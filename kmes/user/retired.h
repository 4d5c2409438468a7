// SPDX-License-Identifier: GPL-2.0-only OR MIT
// The buffers that swaps have retired, while their producer nudges them (E19). A consumer may
// attach just before a swap and load `generation` just after it. It then takes the dead buffer for
// the current one, because its `generation` already has the new value. Only the next nudge or
// change reveals this.
#ifndef KMES_USER_RETIRED_H
#define KMES_USER_RETIRED_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kmes/ring.h"
#include "kmes/user/memory.h"
#include "kmes/user/platform.h"

namespace kmes {

// The times at which retired buffers are nudged, and how long they are kept. A retired buffer costs
// its producer one page of memory. It has no descriptor once no attach in progress uses it
// (BufferMemory::remove_user). Its data pages exist while consumers map them.
struct NudgeSchedule {
    uint64_t first_interval_ms = 10;  // from the swap to the first nudge by the clock; at least 1
    uint64_t growth = 2;              // the factor from one interval to the next; at least 1
    uint64_t keep_ms = 60000;         // since the swap
    size_t keep_count = 4;            // for each CPU; after more swaps the oldest is dropped first
    // A thread of the producer does the due work. Without it the owner calls nudge_due.
    bool in_background = true;
};

// At most one thread may use it at a time, except size().
class RetiredBuffers {
  public:
    explicit RetiredBuffers(const NudgeSchedule& schedule);

    // Reserves room for `count` more, so that add() does not throw.
    void reserve(size_t count) { retired_.reserve(retired_.size() + count); }
    // Adds a buffer that a swap has retired at `now_ms`.
    void add(uint16_t cpu, BufferHandle memory, uint64_t now_ms);

    // One step, independent of the clock: nudges every buffer once. Returns their number.
    size_t nudge_all();
    // Nudges the due buffers, and drops those that were kept long enough, after a last nudge.
    // Returns the number of nudges.
    size_t nudge_due(uint64_t now_ms);
    // Returns when nudge_due has work next; UINT64_MAX: never.
    uint64_t next_due_ms() const;

    // Any thread may call it.
    size_t size() const { return size_.load(std::memory_order_relaxed); }

  private:
    struct Retired {
        BufferHandle memory;
        uint64_t due_ms;
        uint64_t interval_ms;
        uint64_t drop_ms;
        uint16_t cpu;
    };

    void nudge(const Retired& retired);
    void drop_oldest_of(uint16_t cpu);

    const NudgeSchedule schedule_;
    std::vector<Retired> retired_;  // oldest first
    std::atomic<size_t> size_{0};   // of retired_
    CpuPlatform platform_;
    struct kmes_cpu nudger_;
};

}  // namespace kmes

#endif
