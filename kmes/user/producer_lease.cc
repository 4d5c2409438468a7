// SPDX-License-Identifier: GPL-2.0-only OR MIT
// Producer: attach of consumers whose end is noticed, and the actions after the end of the last one
// (E12).
#include <cerrno>

#include "kmes/user/futex.h"
#include "kmes/user/producer_cpu.h"

namespace kmes {
namespace {

// Emitters change the word without an atomic store. Each value that it had is right for the caller:
// an event that is concurrent with an attach may come before or after it.
__attribute__((noinline, no_sanitize("thread"))) uint64_t value_now(const __u64* word) {
    return *static_cast<const volatile __u64*>(word);
}

}  // namespace

int Producer::inspect(unsigned cpu, Attachment* attachment) const {
    if (cpu >= cpus_.size()) return -EINVAL;
    return attach_some(cpu, 1, User::kNone, Promise::kNone, attachment);
}

uint64_t Producer::next_sequence(unsigned cpu) const {
    return value_now(&cpus_[cpu]->core.sequence) + 1;
}

int Producer::lease(Attachment* attachment, Promise promise) const {
    return attach_some(0, cpus_.size(), User::kLease, promise, attachment);
}

int Producer::lease(unsigned cpu, Attachment* attachment, Promise promise) const {
    if (cpu >= cpus_.size()) return -EINVAL;
    return attach_some(cpu, 1, User::kLease, promise, attachment);
}

// An attach takes control_, so a consumer that has the buffer already has its lease.
void Producer::end_lease(unsigned cpu, uint64_t inode) {
    std::lock_guard lock(control_);

    if (is_retired_ || cpu >= cpus_.size() || cpus_[cpu]->current->inode() != inode) return;
    cpus_[cpu]->leases--;
    cpus_[cpu]->note_users();
    if (cpus_[cpu]->has_users()) return;
    cpus_[cpu]->clear_is_due = options_.emitters == EmitterMode::kLocked;
}

// A consumer that has attached since then may be asleep. The end of its lease tries again.
bool Producer::clear_due_flags() {
    std::lock_guard lock(control_);
    bool is_any_due = false;

    for (const auto& cpu : cpus_) {
        if (!cpu->clear_is_due) continue;
        cpu->clear_is_due = !is_retired_ && !cpu->has_users() && !clear_wake(*cpu);
        is_any_due |= cpu->clear_is_due;
    }
    return is_any_due;
}

bool Producer::is_attended(unsigned cpu) const {
    std::lock_guard lock(control_);

    return cpu < cpus_.size() && cpus_[cpu]->has_users();
}

bool Producer::is_held_long(unsigned cpu) const {
    return cpus_[cpu]->platform.is_held_long();
}

bool Producer::clear_wake(Cpu& cpu) {
    bool was_asked = false;
    const bool has_run = cpu.platform.try_with_others_out(
        [&] { was_asked = clear_need_wake(cpu.current->buffer()); });

    if (was_asked) kmes_futex_wake_all(cpu.current->futex_word());
    return has_run;
}

}  // namespace kmes
