/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The life of an object whose callback may close it. The loop that calls the callback holds the
 * life, and asks it whether the object still exists. A callback that never returns (longjmp) leaves
 * only these few bytes. At most one thread uses an object and its life at a time.
 */
#ifndef KMES_USER_OBJECT_LIFE_H
#define KMES_USER_OBJECT_LIFE_H

#include <stdlib.h>

#include "kmes/abi.h"

struct kmes_object_life {
    unsigned holders;
    bool is_over;
};

/* Held by the object. NULL: no memory. */
static inline struct kmes_object_life* kmes_life_begin(void) {
    struct kmes_object_life* life = (struct kmes_object_life*)calloc(1, sizeof(*life));

    if (life) life->holders = 1;
    return life;
}

static inline struct kmes_object_life* kmes_life_hold(struct kmes_object_life* life) {
    life->holders++;
    return life;
}

/* True if the object was closed. */
static inline bool kmes_life_drop(struct kmes_object_life* life) {
    const bool is_over = life->is_over;

    if (--life->holders == 0) free(life);
    return is_over;
}

/* The object is closed. NULL has no effect. */
static inline void kmes_life_end(struct kmes_object_life* life) {
    if (!life) return;
    life->is_over = true;
    kmes_life_drop(life);
}

#endif
