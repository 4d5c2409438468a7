/* SPDX-License-Identifier: MIT
 *
 * The modes with unusual system calls: their arguments are addresses of a buffer, or the calls are
 * restricted.
 */
#define _GNU_SOURCE
#include "testee.h"

#include <asm/prctl.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kParts = 1024, kPartBytes = 8, kWaiters = 100 };

/* The kernel keeps these addresses, and gives them back. */
static int mode_addresses_as_values(char** argv) {
    (void)argv;
    attach_and_map();
    unsigned long base = 0;
    syscall(SYS_arch_prctl, ARCH_SET_GS, maps[0]);
    syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
    say("base is kept", base == (unsigned long)maps[0]);
    int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    const off_t at = (off_t)(uintptr_t)maps[0];
    say("offset is kept", lseek(memory, at, SEEK_SET) == at);
    return 0;
}

/* As many parts as the kernel takes. */
static int mode_many_parts(char** argv) {
    (void)argv;
    attach_and_map();
    static struct iovec parts[kParts];
    for (int i = 0; i < kParts; i++) {
        parts[i].iov_base = maps[0] + kMetadataBytes + kPartBytes * i;
        parts[i].iov_len = kPartBytes;
    }
    int file = memfd_create("parts", MFD_CLOEXEC);
    say("written", pwritev(file, parts, kParts, 0));
    unsigned char byte = 0;
    say("read", pread(file, &byte, 1, 5));
    say("byte", byte);
    return 0;
}

static int timeouts;

static void* wait_for_a_moment(void* unused) {
    (void)unused;
    struct futex_waitv entry = {
        .val = load(word_of(0)), .uaddr = (uintptr_t)word_of(0), .flags = FUTEX_32};
    struct timespec limit;
    clock_gettime(CLOCK_MONOTONIC, &limit);
    limit.tv_sec += 1;
    if (syscall(SYS_futex_waitv, &entry, 1, 0, &limit, CLOCK_MONOTONIC) == -1 && errno == ETIMEDOUT)
        __atomic_fetch_add(&timeouts, 1, __ATOMIC_RELAXED);
    return NULL;
}

static int mode_many_waits(char** argv) {
    (void)argv;
    pthread_t threads[kWaiters];
    attach_and_map();
    for (int i = 0; i < kWaiters; i++) pthread_create(&threads[i], NULL, wait_for_a_moment, NULL);
    for (int i = 0; i < kWaiters; i++) pthread_join(threads[i], NULL);
    say("timeouts", timeouts);
    return 0;
}

/* As Wine runs the code of a program: a call there is a signal, and no call. */
static int mode_dispatches_calls(char** argv) {
    (void)argv;
    enum { kSetDispatch = 59, kOn = 1, kAllow = 0, kBlock = 1 };
    static volatile char selector = kAllow;
    attach_and_map();
    if (prctl(kSetDispatch, kOn, 0, 0, &selector) != 0) return kNotPossibleHere;
    const volatile unsigned char* data = maps[0] + kMetadataBytes;
    selector = kBlock;
    const unsigned char first = data[5];
    const unsigned char second = data[5 + capacity];
    selector = kAllow;
    say("sum", first + second);
    return 0;
}

static void* restrict_itself(void* unused) {
    prctl(PR_SET_SECCOMP, 1 /* SECCOMP_MODE_STRICT */);
    syscall(SYS_exit, 0);
    return unused;
}

static int mode_strict_thread(char** argv) {
    (void)argv;
    pthread_t thread;
    attach_and_map();
    pthread_create(&thread, NULL, restrict_itself, NULL);
    pthread_join(thread, NULL);
    return 0;
}

const struct mode kArgumentModes[] = {
    {"addresses-as-values", mode_addresses_as_values},
    {"many-parts", mode_many_parts},
    {"many-waits", mode_many_waits},
    {"dispatches-calls", mode_dispatches_calls},
    {"strict-thread", mode_strict_thread},
    {NULL, NULL},
};
