// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The hook of the hooked build (order_hooked.h).
 */
#ifndef KMES_ORDER_HOOKED
#define KMES_ORDER_HOOKED 1
#endif
#include "kmes/order.h"

void (*kmes_order_hook)(void* context, const struct kmes_order_access* access);
void* kmes_order_hook_context;
