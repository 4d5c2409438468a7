// SPDX-License-Identifier: MIT
//
// The way in which the machine observes the accesses of the core. In the hooked build every access
// is a step. In the core as shipped no access is reported: an operation is one step, and only its
// result can be checked.
#ifndef KMES_PROPS_MACHINE_ACCESS_H_
#define KMES_PROPS_MACHINE_ACCESS_H_

#include "kmes/order.h"
#include "kmes/user/order_access.h"

#ifdef KMES_ORDER_HOOKED
inline constexpr bool kIsHooked = true;
#else
inline constexpr bool kIsHooked = false;

// The names of kmes/user/order_hooked.h, so that both builds can use the same source of the
// machine.
inline void (*kmes_order_hook)(void* context, const struct kmes_order_access* access) = nullptr;
inline void* kmes_order_hook_context = nullptr;
#endif

#endif  // KMES_PROPS_MACHINE_ACCESS_H_
