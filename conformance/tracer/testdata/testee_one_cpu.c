/* SPDX-License-Identifier: MIT
 *
 * A kmes_attach that gives one CPU, and the mapping with a page of metadata that only the producer
 * writes (docs/layouts.md, forms C and D).
 */
#define _GNU_SOURCE
#include "testee.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kProducerBytes = 4096, kDataOffset = 8192, kFlag = 4096 };
static const uint32_t kAskForCount = 0xffffffff;

/* Returns the fd, or a negative errno. */
static long attach_one(uint32_t cpu, uint64_t* bytes) {
    const long fd = syscall(1091, cpu, bytes);
    return fd < 0 ? -errno : fd;
}

static unsigned char* map_first(void) {
    const long fd = attach_one(0, &capacity);
    if (fd < 0) {
        say("attach failed", fd);
        return NULL;
    }
    void* at =
        mmap(NULL, kDataOffset + 2 * capacity, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

static int mode_answers(char** argv) {
    (void)argv;
    uint64_t bytes = 7;
    say("none", attach_one(2, &bytes));
    say("untouched", (long)bytes);
    say("count", attach_one(kAskForCount, &bytes));
    say("is", (long)bytes);
    say("bad capacity", attach_one(0, NULL));
    say("bad before none", attach_one(2, NULL));
    const long fd = attach_one(1, &bytes);
    say("is an fd", fd >= 0);
    say("capacity", (long)bytes);
    return 0;
}

static int mode_maps(char** argv) {
    (void)argv;
    unsigned char* at = map_first();
    if (at == NULL) return 4;
    at[kFlag] = 1;
    say("data", at[kDataOffset + 5]);
    say("data again", at[kDataOffset + capacity + 5]);
    say("protect", mprotect(at, kProducerBytes, PROT_READ | PROT_WRITE) == 0 ? 0 : errno);
    return 0;
}

static long map_piece(uint64_t bytes, int flags, int fd, off_t offset) {
    void* at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, offset);
    return at == MAP_FAILED ? errno : 0;
}

static int mode_odd_maps(char** argv) {
    (void)argv;
    const long fd = attach_one(0, &capacity);
    if (fd < 0) return 4;
    const uint64_t whole = kDataOffset + 2 * capacity;
    say("form A", map_piece(whole - kProducerBytes, MAP_SHARED, (int)fd, 0));
    say("page", map_piece(kProducerBytes, MAP_SHARED, (int)fd, 0));
    say("private", map_piece(whole, MAP_PRIVATE, (int)fd, 0));
    say("offset", map_piece(whole, MAP_SHARED, (int)fd, kProducerBytes));
    say("in pages", map_piece(whole - 1, MAP_SHARED, (int)fd, 0));
    say("whole", map_piece(whole, MAP_SHARED, (int)fd, 0));
    return 0;
}

static int mode_writes(char** argv) {
    (void)argv;
    volatile unsigned char* at = map_first();
    if (at == NULL) return 4;
    at[kNeedWake] = 1;
    return 0;
}

static int mode_accesses(char** argv) {
    (void)argv;
    unsigned char* at = map_first();
    if (at == NULL) return 4;
    (void)__atomic_load_n((uint64_t*)(at + 64), __ATOMIC_ACQUIRE);
    __atomic_store_n(at + kFlag, 1, __ATOMIC_RELEASE);
    (void)__atomic_load_n((uint32_t*)(at + kWord), __ATOMIC_ACQUIRE);
    return 0;
}

const struct mode kOneCpuModes[] = {
    {"one-cpu-answers", mode_answers},   {"one-cpu-maps", mode_maps},
    {"one-cpu-odd-maps", mode_odd_maps}, {"one-cpu-writes", mode_writes},
    {"one-cpu-accesses", mode_accesses}, {NULL, NULL},
};
