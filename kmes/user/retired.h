// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// The buffers that swaps have left behind, for as long as their producer nudges them (E19): a
// consumer that attached just before a swap and read `generation` just after it has taken the new
// value for that of the dead buffer, and finds out by the next change only.
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

// When retired buffers are nudged, and how long they are kept for it. A retired buffer costs its
// producer one page of memory and no descriptor, as soon as no attach is on its way with it
// (BufferMemory::remove_user). The pages of its data live as long as consumers map them.
struct NudgeSchedule {
    uint64_t first_interval_ms = 10;  // from the swap to the first nudge by the clock; at least 1
    uint64_t growth = 2;              // each interval is so many times the one before; at least 1
    uint64_t keep_ms = 60000;         // from the swap on
    size_t keep_count = 4;            // a CPU; where more swaps come, the oldest goes first
    // A thread of the producer does what is due. Without it the owner calls nudge_due.
    bool in_background = true;
};

// Not for several threads at a time, but for size().
class RetiredBuffers {
  public:
    explicit RetiredBuffers(const NudgeSchedule& schedule);

    // Room for `count` more: add() does not throw then.
    void reserve(size_t count) { retired_.reserve(retired_.size() + count); }
    // A buffer that a swap left behind at `now_ms`.
    void add(uint16_t cpu, BufferHandle memory, uint64_t now_ms);

    // One step, whatever the clock says: nudges every buffer once. How many.
    size_t nudge_all();
    // Nudges what is due, and drops what was kept long enough, after a last nudge. How many nudges.
    size_t nudge_due(uint64_t now_ms);
    // When nudge_due has something to do next; UINT64_MAX: never.
    uint64_t next_due_ms() const;

    // From any thread.
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
