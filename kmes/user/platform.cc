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
    platform_.clock_ns = clock.now_ns || !counter_is_usable() ? injected_ns : counter_ns;
    platform_.enter = mode == EmitterMode::kLocked ? enter : nullptr;
    platform_.exit = mode == EmitterMode::kLocked ? exit : nullptr;
    platform_.issue_wakes = issue_wakes;
    platform_.queue_wake = queue_wake;
    platform_.sleep = nullptr;  // no reader in here
}

__u64 CpuPlatform::counter_ns(void* context) {
    return static_cast<CpuPlatform*>(context)->counter_clock_.now_ns();
}

__u64 CpuPlatform::injected_ns(void* context) {
    const Clock& clock = static_cast<CpuPlatform*>(context)->clock_;

    return clock.now_ns(clock.context);
}

// kLocked alone: kSingle has no function to enter by.
bool CpuPlatform::enter(void* context) {
    auto* self = static_cast<CpuPlatform*>(context);

    if (!self->lock_.lock()) return self->passes_;
    if (!self->is_closed()) return true;
    self->lock_.unlock();
    return false;
}

// What a wake is owed to, or NULL; it stays pinned, and is the caller's from now on. `next` takes
// its place.
BufferMemory* CpuPlatform::exchange_owed(BufferMemory* next) {
    void* owed = __atomic_exchange_n(&platform_.owed_wake, next, __ATOMIC_RELAXED);

    return static_cast<BufferMemory*>(owed);
}

// kLocked alone. The wake is issued when the lock is released (its system call takes longer than an
// emission). The pin keeps the buffer until then, whatever is swapped or dropped meanwhile (E16).
void CpuPlatform::exit(void* context) {
    auto* self = static_cast<CpuPlatform*>(context);
    BufferMemory* owed = nullptr;

    if (__atomic_load_n(&self->platform_.owed_wake, __ATOMIC_RELAXED))
        owed = self->exchange_owed(nullptr);
    if (!self->passes_) self->lock_.unlock();
    if (owed) wake(owed);
}

// kSingle alone.
void CpuPlatform::issue_wakes(void* context) {
    BufferMemory* owed = static_cast<CpuPlatform*>(context)->exchange_owed(nullptr);

    if (owed) wake(owed);
}

void CpuPlatform::queue_wake(void* context, struct kmes_buffer* buffer) {
    auto* self = static_cast<CpuPlatform*>(context);
    BufferMemory* memory = BufferMemory::of(buffer);

    memory->pin();
    BufferMemory* earlier = self->exchange_owed(memory);

    if (earlier) wake(earlier);  // kSingle: a signal handler came before the exit of its thread
}

}  // namespace kmes
