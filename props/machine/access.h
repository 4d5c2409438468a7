// SPDX-License-Identifier: MIT
//
// What the machine needs to know of the core's build. Hooked, every access is a step; as it ships,
// nothing is told, an operation is one step, and only what it leaves behind can be looked at.
#ifndef KMES_PROPS_MACHINE_ACCESS_H_
#define KMES_PROPS_MACHINE_ACCESS_H_

#include "kmes/order.h"
#include "kmes/user/order_access.h"

#ifdef KMES_ORDER_HOOKED
inline constexpr bool kIsHooked = true;
#else
inline constexpr bool kIsHooked = false;

// The names of kmes/user/order_hooked.h, so that the machine is one text for both builds.
inline void (*kmes_order_hook)(void* context, const struct kmes_order_access* access) = nullptr;
inline void* kmes_order_hook_context = nullptr;
#endif

#endif  // KMES_PROPS_MACHINE_ACCESS_H_
