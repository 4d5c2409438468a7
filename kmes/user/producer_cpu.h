// SPDX-License-Identifier: GPL-2.0-only OR MIT
// One CPU of a Producer. The files of Producer share it, and it is private to them.
#ifndef KMES_USER_PRODUCER_CPU_H
#define KMES_USER_PRODUCER_CPU_H

#include "kmes/user/producer.h"

namespace kmes {

struct Producer::Cpu {
    Cpu(EmitterMode mode, Clock clock) : platform(mode, clock) { platform.set_cpu(&core); }

    CpuPlatform platform;
    struct kmes_cpu core = {};
    BufferHandle current;        // the owner of core.buffer; under control_
    struct kmes_swap swap = {};  // a swap in progress; under resizing_

    // Leases of consumers that may be asleep on `current` (E12); under control_.
    unsigned leases = 0;
    bool has_unknown_users = false;  // attached without a lease: need_wake is never cleared
    bool clear_is_due = false;       // the last consumer has gone: need_wake must be cleared

    bool has_users() const { return leases > 0 || has_unknown_users; }
    // Call it after each change of these two.
    void note_users() { platform.set_attended(has_users()); }
};

}  // namespace kmes

#endif
