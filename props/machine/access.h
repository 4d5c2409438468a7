// SPDX-License-Identifier: MIT
//
// What the machine needs to know of the core's build. Hooked, every access is a step; as it ships,
// nothing is told, an operation is one step, and only what it leaves behind can be looked at.
#ifndef KMES_PROPS_MACHINE_ACCESS_H_
#define KMES_PROPS_MACHINE_ACCESS_H_

#include "kmes/order.h"

#ifdef KMES_ORDER_HOOKED
inline constexpr bool kIsHooked = true;
#else
inline constexpr bool kIsHooked = false;

// The names of kmes/user/order_hooked.h, so that the machine is one text for both builds.
enum kmes_order_kind {
    KMES_ORDER_KIND_load_relaxed,
    KMES_ORDER_KIND_load_acquire,
    KMES_ORDER_KIND_store_relaxed,
    KMES_ORDER_KIND_store_release,
    KMES_ORDER_KIND_fence_release,
    KMES_ORDER_KIND_fence_acquire,
    KMES_ORDER_KIND_fence_full,
    KMES_ORDER_KIND_copy_in,
    KMES_ORDER_KIND_copy_out,
    KMES_ORDER_KIND_validated,
};

struct kmes_order_access {
    enum kmes_order_label label;
    enum kmes_order_kind kind;
    const void* address;
    __u64 bytes;
};

inline void (*kmes_order_hook)(void* context, const struct kmes_order_access* access) = nullptr;
inline void* kmes_order_hook_context = nullptr;
#endif

#endif  // KMES_PROPS_MACHINE_ACCESS_H_
