// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// The platform of one producer CPU. See platform.h.
#include "kmes/user/platform.h"

#include "kmes/order.h"
#include "kmes/user/futex.h"

namespace kmes {
namespace {

uint64_t system_clock_ns(void*) {
    return kmes_clock_realtime_ns();
}

}  // namespace

bool clear_need_wake(struct kmes_buffer* buffer, const std::atomic<bool>* is_attended) {
    if (!kmes_load_relaxed_u8(buffer->shared.need_wake, KMES_ORDER_NEED_WAKE)) return false;
    kmes_store_relaxed_u8(buffer->shared.need_wake, 0, KMES_ORDER_CLEAR_WAKE);
    // Pairs with a consumer, whose attach is complete before it sets need_wake: if the 0 has
    // replaced that 1, the load sees the lease. No emitter sees the 0, because all are outside.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (is_attended && is_attended->load(std::memory_order_relaxed)) {
        kmes_store_relaxed_u8(buffer->shared.need_wake, 1, KMES_ORDER_CLEAR_WAKE);
        return false;
    }
    buffer->futex_counter++;
    kmes_store_release_u32(buffer->shared.futex_counter, buffer->futex_counter, KMES_ORDER_COUNTER);
    return true;
}

CpuPlatform::CpuPlatform(EmitterMode mode, Clock clock)
    : mode_(mode), clock_(clock.now_ns ? clock : Clock{system_clock_ns, nullptr}) {
    platform_.context = this;
    platform_.clock_ns = clock.now_ns || !counter_is_usable() ? injected_ns : counter_ns;
    platform_.enter = mode == EmitterMode::kLocked ? enter : nullptr;
    platform_.exit = mode == EmitterMode::kLocked ? exit : nullptr;
    platform_.issue_wakes = issue_wakes;
    platform_.queue_wake = queue_wake;
    platform_.sleep = nullptr;  // there is no reader here
}

__u64 CpuPlatform::counter_ns(void* context) {
    return static_cast<CpuPlatform*>(context)->counter_clock_.now_ns();
}

__u64 CpuPlatform::injected_ns(void* context) {
    const Clock& clock = static_cast<CpuPlatform*>(context)->clock_;

    return clock.now_ns(clock.context);
}

// Only for kLocked: kSingle has no function to enter.
bool CpuPlatform::enter(void* context) {
    auto* self = static_cast<CpuPlatform*>(context);

    if (!self->lock_.lock()) return self->passes_;
    if (!self->is_closed()) return true;
    self->lock_.unlock();
    return false;
}

// 5.1.7 step 9: FUTEX_WAKE, then unpins the buffer.
void CpuPlatform::wake(BufferMemory* memory) {
    const int woken = kmes_futex_wake_all(memory->futex_word());

    if (woken == 0 && !is_attended_.load(std::memory_order_relaxed)) forget_sleepers(memory);
    memory->unpin();
}

// Does not wait for the lock: the next event tries again. A buffer that was swapped out meanwhile
// gets no more events, so its flag has no cost. Nudges write to it, in their own critical section
// (RetiredBuffers).
void CpuPlatform::forget_sleepers(BufferMemory* memory) {
    if (mode_ != EmitterMode::kLocked || !lock_.try_lock()) return;
    const bool is_current = cpu_ && cpu_->buffer == memory->buffer();
    const bool was_asked = is_current && clear_need_wake(memory->buffer(), &is_attended_);

    lock_.unlock();
    if (was_asked) kmes_futex_wake_all(memory->futex_word());
}

// Returns the buffer to which a wake is owed, or NULL. It stays pinned, and the caller owns the
// pin. `next` replaces it.
BufferMemory* CpuPlatform::exchange_owed(BufferMemory* next) {
    void* owed = __atomic_exchange_n(&platform_.owed_wake, next, __ATOMIC_RELAXED);

    return static_cast<BufferMemory*>(owed);
}

// Only for kLocked. The wake is issued after the release of the lock, because its system call takes
// longer than an emission. The pin keeps the buffer until then, across swaps and drops (E16).
void CpuPlatform::exit(void* context) {
    auto* self = static_cast<CpuPlatform*>(context);
    BufferMemory* owed = nullptr;

    if (__atomic_load_n(&self->platform_.owed_wake, __ATOMIC_RELAXED))
        owed = self->exchange_owed(nullptr);
    if (!self->passes_) self->lock_.unlock();
    if (owed) self->wake(owed);
}

// Only for kSingle.
void CpuPlatform::issue_wakes(void* context) {
    auto* self = static_cast<CpuPlatform*>(context);

    if (BufferMemory* owed = self->exchange_owed(nullptr)) self->wake(owed);
}

void CpuPlatform::queue_wake(void* context, struct kmes_buffer* buffer) {
    auto* self = static_cast<CpuPlatform*>(context);
    BufferMemory* memory = BufferMemory::of(buffer);

    memory->pin();
    BufferMemory* earlier = self->exchange_owed(memory);

    if (earlier)
        self->wake(earlier);  // kSingle: a signal handler interrupted its thread before the exit
}

}  // namespace kmes
