// SPDX-License-Identifier: GPL-2.0-only OR MIT
//
// What the files of Producer share, and nobody else sees: one CPU.
#ifndef KMES_USER_PRODUCER_CPU_H
#define KMES_USER_PRODUCER_CPU_H

#include "kmes/user/producer.h"

namespace kmes {

struct Producer::Cpu {
    Cpu(EmitterMode mode, Clock clock) : platform(mode, clock) { platform.set_cpu(&core); }

    CpuPlatform platform;
    struct kmes_cpu core = {};
    BufferHandle current;        // what core.buffer belongs to; under control_
    struct kmes_swap swap = {};  // on its way to another one; under resizing_

    // Who may be asleep on `current` (E12); under control_.
    unsigned leases = 0;
    bool has_unknown_users = false;  // attached without a lease: need_wake is never cleared
    bool clear_is_due = false;       // the last one has gone: need_wake is to be cleared

    bool has_users() const { return leases > 0 || has_unknown_users; }
    // After each change of the two.
    void note_users() { platform.set_attended(has_users()); }
};

}  // namespace kmes

#endif
