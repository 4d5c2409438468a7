/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * An access as a hook sees it (order_hooked.h). Tests with one text for builds with and without
 * hooks use it, too. Include the labels of kmes/order.h first.
 */
#ifndef KMES_USER_ORDER_ACCESS_H
#define KMES_USER_ORDER_ACCESS_H

#include "kmes/types.h"

/* The kind of an access: the second column of KMES_ORDER_LABELS. */
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

/* An access before it is executed. Fences have no address. A test compares `kind` with the index of
 * labels. It thus detects a weaker order, which no interleaving on this machine shows. */
struct kmes_order_access {
    enum kmes_order_label label;
    enum kmes_order_kind kind;
    const void* address;
    __u64 bytes;
};

#endif
