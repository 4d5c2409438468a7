// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Keeps, nudges and drops retired buffers. See retired.h.
#include "kmes/user/retired.h"

#include <algorithm>
#include <utility>

namespace kmes {
namespace {

// Bounded, so that no sum or product of an option overflows.
uint64_t add_bounded(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

uint64_t multiply_bounded(uint64_t a, uint64_t b) {
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

}  // namespace

// Only nudges write to a retired buffer, so they have their own critical section. No emitter waits
// for a nudge, and a producer without locks need not be idle for it.
RetiredBuffers::RetiredBuffers(const NudgeSchedule& schedule)
    : schedule_(schedule), platform_(EmitterMode::kLocked, Clock()) {
    kmes_cpu_init(&nudger_, 0, nullptr, platform_.platform(), 0);
}

void RetiredBuffers::nudge(const Retired& retired) {
    kmes_buffer_nudge(&nudger_, retired.memory->buffer());
}

void RetiredBuffers::add(uint16_t cpu, BufferHandle memory, uint64_t now_ms) {
    uint64_t interval_ms = std::max<uint64_t>(schedule_.first_interval_ms, 1);

    retired_.push_back({std::move(memory), add_bounded(now_ms, interval_ms), interval_ms,
                        add_bounded(now_ms, schedule_.keep_ms), cpu});
    drop_oldest_of(cpu);
    size_.store(retired_.size(), std::memory_order_relaxed);
}

// A pending wake pins its buffer (E16): a later swap drops it.
void RetiredBuffers::drop_oldest_of(uint16_t cpu) {
    auto of_cpu = [cpu](const Retired& retired) { return retired.cpu == cpu; };

    if (static_cast<size_t>(std::count_if(retired_.begin(), retired_.end(), of_cpu)) <=
        schedule_.keep_count)
        return;
    auto oldest = std::find_if(retired_.begin(), retired_.end(), of_cpu);

    nudge(*oldest);
    if (!oldest->memory->is_pinned()) retired_.erase(oldest);
}

size_t RetiredBuffers::nudge_all() {
    for (const Retired& retired : retired_) nudge(retired);
    return retired_.size();
}

size_t RetiredBuffers::nudge_due(uint64_t now_ms) {
    size_t nudges = 0;

    for (Retired& retired : retired_) {
        if (now_ms < std::min(retired.due_ms, retired.drop_ms)) continue;
        nudge(retired);
        nudges++;
        retired.interval_ms =
            multiply_bounded(retired.interval_ms, std::max<uint64_t>(schedule_.growth, 1));
        retired.due_ms = add_bounded(now_ms, retired.interval_ms);
    }
    std::erase_if(retired_, [now_ms](const Retired& retired) {
        return now_ms >= retired.drop_ms && !retired.memory->is_pinned();
    });
    size_.store(retired_.size(), std::memory_order_relaxed);
    return nudges;
}

uint64_t RetiredBuffers::next_due_ms() const {
    uint64_t next = UINT64_MAX;

    for (const Retired& retired : retired_)
        next = std::min(next, std::min(retired.due_ms, retired.drop_ms));
    return next;
}

}  // namespace kmes
