/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The part of kmes/order.h that all userspace implementations share: words that only a signal
 * handler on the same thread can interrupt (E16). Only these implementations include it.
 */
#ifndef KMES_USER_ORDER_LOCAL_H
#define KMES_USER_ORDER_LOCAL_H

static inline unsigned kmes_local_load(const unsigned* word) {
    unsigned value = __atomic_load_n(word, __ATOMIC_RELAXED);

    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return value;
}

static inline void kmes_local_store(unsigned* word, unsigned value) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

static inline unsigned kmes_local_add(unsigned* word, unsigned n) {
    return __atomic_fetch_add(word, n, __ATOMIC_RELAXED);
}

#endif
