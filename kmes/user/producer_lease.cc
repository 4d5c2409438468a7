// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// Producer: attach by consumers whose end is known, and what is done when the last one has gone
// (E12).
#include <cerrno>

#include "kmes/order.h"
#include "kmes/user/futex.h"
#include "kmes/user/producer_cpu.h"

namespace kmes {

int Producer::look(unsigned cpu, Attachment* attachment) const {
    return cpu < cpus_.size() ? attach_some(cpu, 1, User::kNone, attachment) : -EINVAL;
}

int Producer::lease(Attachment* attachment) const {
    return attach_some(0, cpus_.size(), User::kLease, attachment);
}

int Producer::lease(unsigned cpu, Attachment* attachment) const {
    return cpu < cpus_.size() ? attach_some(cpu, 1, User::kLease, attachment) : -EINVAL;
}

// An attach takes control_, so a consumer that has the buffer has its lease by now.
void Producer::end_lease(unsigned cpu, uint64_t inode) {
    std::lock_guard lock(control_);

    if (is_retired_ || cpu >= cpus_.size() || cpus_[cpu]->current->inode() != inode) return;
    if (--cpus_[cpu]->leases > 0 || cpus_[cpu]->has_unknown_users) return;
    cpus_[cpu]->clear_is_due = options_.emitters == EmitterMode::kLocked;
}

// Whoever has attached since then may be asleep; the end of that lease asks again.
bool Producer::clear_due_flags() {
    std::lock_guard lock(control_);
    bool is_any_due = false;

    for (const auto& cpu : cpus_) {
        if (!cpu->clear_is_due) continue;
        cpu->clear_is_due =
            !is_retired_ && cpu->leases == 0 && !cpu->has_unknown_users && !clear_wake(*cpu);
        is_any_due |= cpu->clear_is_due;
    }
    return is_any_due;
}

bool Producer::is_held_long(unsigned cpu) const {
    return cpus_[cpu]->platform.is_held_long();
}

// CLEAR_WAKE comes before COUNTER. A consumer that nobody knew of, and that took the new counter,
// sets its flag after it was cleared; one that took the old counter finds another value in its
// futex_wait, or is woken. So it asks again. (One that takes the counter after it has set the flag
// is not covered.)
bool Producer::clear_wake(Cpu& cpu) {
    struct kmes_buffer* buffer = cpu.current->buffer();
    bool was_asked = false;

    const bool has_run = cpu.platform.try_with_others_out([&] {
        was_asked = kmes_load_relaxed_u8(buffer->shared.need_wake, KMES_ORDER_NEED_WAKE) != 0;
        if (!was_asked) return;
        kmes_store_relaxed_u8(buffer->shared.need_wake, 0, KMES_ORDER_CLEAR_WAKE);
        buffer->futex_counter++;
        kmes_store_release_u32(buffer->shared.futex_counter, buffer->futex_counter,
                               KMES_ORDER_COUNTER);
    });
    if (was_asked) kmes_futex_wake_all(cpu.current->futex_word());
    return has_run;
}

}  // namespace kmes
