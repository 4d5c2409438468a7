// SPDX-License-Identifier: MIT
//
// Included before the C example (-include). The example then stores to need_wake before its first
// sleep, more often than a play stops at accesses of one phase. need_wake is set already, so the
// stores change nothing.
#ifndef KMES_CONFORMANCE_EXPLORER_TESTDATA_BUSY_CONSUMER_H_
#define KMES_CONFORMANCE_EXPLORER_TESTDATA_BUSY_CONSUMER_H_

#define _GNU_SOURCE
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

static void set_need_wake_often(const _Atomic uint32_t* futex_counter) {
    enum { kStores = 21000 };
    static atomic_bool is_done;
    if (atomic_exchange(&is_done, true)) return;
    _Atomic uint8_t* need_wake = (_Atomic uint8_t*)(uintptr_t)(futex_counter + 1);
    for (int i = 0; i < kStores; i++) atomic_store_explicit(need_wake, 1, memory_order_relaxed);
}

#define FIRST_OF(first, ...) first
#define syscall(number, ...)                                                                    \
    ((number) == SYS_futex ? set_need_wake_often((const void*)FIRST_OF(__VA_ARGS__)) : (void)0, \
     syscall(number, __VA_ARGS__))

#endif  // KMES_CONFORMANCE_EXPLORER_TESTDATA_BUSY_CONSUMER_H_
