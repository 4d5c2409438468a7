/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What a hook is told of an access (order_hooked.h). Tests that are one text for builds with and
 * without hooks use it too. The labels of kmes/order.h come before it.
 */
#ifndef KMES_USER_ORDER_ACCESS_H
#define KMES_USER_ORDER_ACCESS_H

#include "kmes/types.h"

/* How an access is done: the second column of KMES_ORDER_LABELS. */
enum kmes_order_kind {
    KMES_ORDER_KIND_load_relaxed,
    KMES_ORDER_KIND_load_acquire,
    KMES_ORDER_KIND_store_relaxed,
    KMES_ORDER_KIND_store_release,
    KMES_ORDER_KIND_fence_release,
    KMES_ORDER_KIND_fence_acquire,
    KMES_ORDER_KIND_fence_full,
    KMES_ORDER_KIND_fence_light,
    KMES_ORDER_KIND_copy_in,
    KMES_ORDER_KIND_copy_out,
    KMES_ORDER_KIND_validated,
};

/* One access that is about to be done. Fences have no address. A test compares `kind` with what the
 * index of labels says: so a weaker order is seen, which no interleaving on this machine shows. */
struct kmes_order_access {
    enum kmes_order_label label;
    enum kmes_order_kind kind;
    const void* address;
    __u64 bytes;
};

#endif
