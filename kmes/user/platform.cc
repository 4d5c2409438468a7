// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// The platform of one producer CPU. See platform.h.
#include "kmes/user/platform.h"

#include "kmes/user/futex.h"

namespace kmes {
namespace {

uint64_t system_clock_ns(void*) {
    return kmes_clock_realtime_ns();
}

// 5.1.7 step 9: FUTEX_WAKE, and the buffer is let go.
void wake(BufferMemory* memory) {
    kmes_futex_wake_all(memory->futex_word());
    memory->unpin();
}

}  // namespace

CpuPlatform::CpuPlatform(EmitterMode mode, Clock clock)
    : mode_(mode), clock_(clock.now_ns ? clock : Clock{system_clock_ns, nullptr}) {
    platform_.context = this;
    platform_.clock_ns = clock_ns;
    platform_.enter = enter;
    platform_.exit = exit;
    platform_.queue_wake = queue_wake;
    platform_.sleep = nullptr;  // no reader in here
}

__u64 CpuPlatform::clock_ns(void* context) {
    const Clock& clock = static_cast<CpuPlatform*>(context)->clock_;

    return clock.now_ns(clock.context);
}

bool CpuPlatform::enter(void* context) {
    auto* self = static_cast<CpuPlatform*>(context);

    if (self->mode_ == EmitterMode::kSingle) return !self->is_closed();
    if (!self->lock_.lock()) return self->passes_;
    if (!self->is_closed()) return true;
    self->lock_.unlock();
    return false;
}

// The wake is issued when the lock is released (its system call takes longer than an emission). The
// pin keeps the buffer until then, whatever is swapped or dropped meanwhile (E16).
void CpuPlatform::exit(void* context) {
    auto* self = static_cast<CpuPlatform*>(context);
    BufferMemory* owed = nullptr;

    if (self->wake_.load(std::memory_order_relaxed))
        owed = self->wake_.exchange(nullptr, std::memory_order_relaxed);
    if (self->mode_ == EmitterMode::kLocked && !self->passes_) self->lock_.unlock();
    if (owed) wake(owed);
}

void CpuPlatform::queue_wake(void* context, struct kmes_buffer* buffer) {
    auto* self = static_cast<CpuPlatform*>(context);
    BufferMemory* memory = BufferMemory::of(buffer);

    memory->pin();
    BufferMemory* earlier = self->wake_.exchange(memory, std::memory_order_relaxed);

    if (earlier) wake(earlier);  // kSingle: a signal handler came before the exit of its thread
}

}  // namespace kmes
