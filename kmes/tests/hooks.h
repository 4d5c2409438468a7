/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * Actions of a test between two accesses of the hooked core, and the mirror that makes small
 * buffers possible (ring_memory.h). Knows accesses, no protocol.
 */
#ifndef KMES_TESTS_HOOKS_H
#define KMES_TESTS_HOOKS_H

#include <functional>

#include "kmes/order.h"
#include "kmes/tests/ring_memory.h"

namespace kmes::tests {

using AccessFunction = std::function<void(const kmes_order_access&)>;

/* Calls `function` before each access of the core, until it goes out of scope. Accesses that
 * `function` itself causes are not reported to it. One at a time. */
class ScopedHook {
  public:
    explicit ScopedHook(AccessFunction function);
    ~ScopedHook();
    ScopedHook(const ScopedHook&) = delete;
    ScopedHook& operator=(const ScopedHook&) = delete;
};

/* Keeps the two halves of a small buffer equal, as long as it is registered. */
void register_memory(RingMemory* memory);
void unregister_memory(RingMemory* memory);

/* The last written word is mirrored at the next access; this function does it now. Call it
 * before reading the data of a small buffer. */
void settle_mirror();

}  // namespace kmes::tests

#endif
