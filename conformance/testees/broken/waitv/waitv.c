// SPDX-License-Identifier: MIT
//
// A correct consumer for the patches of this folder: one thread for all CPUs, futex_waitv,
// copies of up to 4 KiB of events at a time. It uses nothing of this tree.
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { kPage = 4096, kSpan = 4096, kHeader = 29, kMostCpus = 128, kWaitv = 449, kAttach = 1091 };
struct waiter {  // struct futex_waitv of linux/futex.h, which older headers do not have
    uint64_t value, address;
    uint32_t flags, reserved;
};
struct ring {
    int cpu;
    bool done, replaced;
    uint8_t* base;
    uint64_t capacity, generation, read_pos, last_sequence;
    uint32_t counter;
    uint8_t* span;  // a private copy of the bytes from read_pos on
    uint64_t copied;
};
static struct ring rings[kMostCpus];
static struct ring* live[kMostCpus];  // those that have not ended
static int ring_count, live_count, report_fd = 1;
static char report[1 << 19];
static size_t used;
#define PRINT(...) (used += (size_t)sprintf(report + used, __VA_ARGS__))

static uint64_t load_64(const struct ring* r, int at) {
    return atomic_load_explicit((_Atomic uint64_t*)(r->base + at), memory_order_acquire);
}
static uint32_t load_counter(const struct ring* r) {
    return atomic_load_explicit((_Atomic uint32_t*)(r->base + 128), memory_order_acquire);
}
static void store_flag(const struct ring* r, uint8_t value) {
    atomic_store_explicit((_Atomic uint8_t*)(r->base + 132), value, memory_order_relaxed);
}
static uint64_t number(const uint8_t* from, int bytes) {
    uint64_t value = 0;
    memcpy(&value, from, (size_t)bytes);
    return value;
}

static void flush(void) {
    for (size_t done = 0; done < used;) {
        const ssize_t wrote = write(report_fd, report + done, used - done);
        if (wrote < 0 && errno != EINTR) err(1, "write");
        if (wrote > 0) done += (size_t)wrote;
    }
    used = 0;
}

static int attach_all(int* fds, uint64_t* capacity) {
    int count = kMostCpus;
    for (int tries = 0; syscall(kAttach, fds, &count, capacity) != 0; tries++) {
        if (errno != EAGAIN || tries == 5000) err(1, "kmes_attach");
        usleep(1000);
    }
    return count;
}

// The fd of the CPU's current buffer, and its identity.
static int attach_one(int cpu, uint64_t* capacity, struct stat* identity) {
    int fds[kMostCpus];
    const int count = attach_all(fds, capacity);
    for (int i = 0; i < count; i++)
        if (i != cpu) close(fds[i]);
    if (fstat(fds[cpu], identity) != 0) err(1, "fstat");
    return fds[cpu];
}

static void end(struct ring* r) {
    r->done = true;
    for (int i = 0; i < live_count; i++) {
        if (live[i] != r) continue;
        live[i] = live[--live_count];
        return;
    }
}

static void refuse(struct ring* r, const char* reason) {
    PRINT("R %d %s\n", r->cpu, reason);
    end(r);
}

static void take_buffer(struct ring* r) {
    struct stat taken, current;
    uint64_t capacity = 0, ignored;
    const int fd = attach_one(r->cpu, &capacity, &taken);
    void* base = mmap(NULL, kPage + 2 * capacity, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (base == MAP_FAILED) return refuse(r, "cannot be mapped");
    if (r->base != NULL) munmap(r->base, kPage + 2 * r->capacity);
    r->base = base;
    r->capacity = capacity;
    r->copied = 0;
    if (memcmp(r->base, "KMESRING", 8) != 0) return refuse(r, "magic");
    if (number(r->base + 8, 4) != 1) return refuse(r, "version");
    if (number(r->base + 16, 8) != capacity || (capacity & (capacity - 1)) != 0 || capacity < 64)
        return refuse(r, "capacity");
    if (number(r->base + 24, 8) != kPage) return refuse(r, "data_offset");
    if ((r->span = realloc(r->span, capacity + kSpan)) == NULL) err(1, "realloc");
    r->generation = load_64(r, 32);
    close(attach_one(r->cpu, &ignored, &current));
    r->replaced = taken.st_ino != current.st_ino || taken.st_dev != current.st_dev;
    r->read_pos = load_64(r, 72);
    PRINT("G %d %lu\n", r->cpu, r->generation);
}

static bool is_retired(const struct ring* r) {
    return r->replaced || load_64(r, 32) != r->generation;
}

static void deliver(struct ring* r, const uint8_t* event) {
    const uint64_t sequence = number(event + 16, 8), timestamp = number(event + 8, 8);
    const uint32_t size = (uint32_t)number(event, 4), header = (uint32_t)number(event + 4, 4);
    const size_t type_len = number(event + 27, 2);
    if (sequence <= r->last_sequence) return;
    const uint64_t lost = sequence - r->last_sequence - 1;
    if (r->last_sequence != 0 && lost != 0) PRINT("L %d %lu\n", r->cpu, lost);
    r->last_sequence = sequence;
    PRINT("E %d %lu %lu %u ", r->cpu, sequence, timestamp, event[26]);
    for (size_t i = 0; i < type_len; i++) PRINT("%02x", event[kHeader + i]);
    uint64_t digest = 0xcbf29ce484222325;
    for (uint32_t i = header; i < size; i++) digest = (digest ^ event[i]) * 0x100000001b3;
    PRINT(" %u %016lx\n", size - header, digest);
    if (used > sizeof report / 2) flush();
    if (type_len == 20 && memcmp(event + kHeader, "kmes.conformance.end", 20) == 0) end(r);
}

// Extends the copy after the carried-over bytes to `wanted` bytes. False after a lap.
static bool extend_copy(struct ring* r, uint64_t wanted) {
    const uint64_t from = r->read_pos + r->copied;
    memcpy(r->span + r->copied, r->base + kPage + (from & (r->capacity - 1)), wanted - r->copied);
    atomic_thread_fence(memory_order_acquire);
    const uint64_t tail = load_64(r, 72);
    r->copied = wanted;
    if (tail <= r->read_pos) return true;
    r->read_pos = tail;
    r->copied = 0;
    return false;
}

static bool is_empty(const struct ring* r, uint64_t write_pos) {
    return r->read_pos >= write_pos;
}

// Delivers the whole events of the span. Returns the minimum size of the next one; 0 if that is
// impossible.
static uint64_t deliver_span(struct ring* r, uint64_t readable) {
    uint64_t at = 0, needed = kHeader;
    while (!r->done && r->copied - at >= kHeader) {
        const uint8_t* event = r->span + at;
        const uint64_t size = number(event, 4), header = number(event + 4, 4);
        const uint64_t type_len = number(event + 27, 2);
        if (type_len == 0 || header < kHeader + type_len || size < header || size > readable - at)
            return 0;
        needed = size;
        if (size > r->copied - at) break;
        deliver(r, event);
        at += size;
        needed = kHeader;
    }
    memmove(r->span, r->span + at, r->copied - at);
    r->copied -= at;
    r->read_pos += at;
    return needed;
}

static void drain(struct ring* r) {
    uint64_t needed = kHeader;
    while (!r->done) {
        const uint64_t write_pos = load_64(r, 64);
        if (is_empty(r, write_pos)) return;
        const uint64_t tail = load_64(r, 72);
        if (tail > r->read_pos) {
            r->read_pos = tail;
            needed = kHeader;
            r->copied = 0;
            continue;
        }
        const uint64_t readable = write_pos - r->read_pos;
        if (readable > r->capacity || readable < needed) return refuse(r, "positions");
        uint64_t wanted = needed > kSpan ? needed : kSpan;
        if (wanted > readable) wanted = readable;
        if (wanted < r->copied) wanted = r->copied;
        if (!extend_copy(r, wanted)) {
            needed = kHeader;
            continue;
        }
        needed = deliver_span(r, readable);
        if (needed == 0) return refuse(r, "corrupt");
    }
}

static void serve(struct ring* r) {
    while (!r->done) {
        const bool retired = is_retired(r);
        drain(r);
        if (r->done || !retired) return;
        flush();
        take_buffer(r);
    }
}

static void serve_all(void) {
    for (int i = 0; i < ring_count; i++) serve(&rings[i]);
}

static bool has_news(const struct ring* r) {
    return !is_empty(r, load_64(r, 64)) || is_retired(r);
}

// Sets all flags, loads again, sleeps.
static void wait_for_any(void) {
    static struct waiter waiters[kMostCpus];
    for (int i = 0; i < live_count; i++) {
        live[i]->counter = load_counter(live[i]);
        store_flag(live[i], 1);
    }
    atomic_thread_fence(memory_order_seq_cst);
    bool news = false;
    for (int i = 0; i < live_count; i++) news |= has_news(live[i]);
    for (int i = 0; i < live_count; i++) {
        waiters[i].address = (uintptr_t)live[i]->base + 128;
        waiters[i].value = live[i]->counter;
        waiters[i].flags = 2;  // FUTEX_32, shared
    }
    if (!news && syscall(kWaitv, waiters, live_count, 0, NULL, CLOCK_MONOTONIC) < 0 &&
        errno != EAGAIN && errno != EINTR)
        err(1, "futex_waitv");
    for (int i = 0; i < live_count; i++) store_flag(live[i], 0);
}

int main(void) {
    if (getenv("KMES_REPORT_FD") != NULL) report_fd = atoi(getenv("KMES_REPORT_FD"));
    int fds[kMostCpus];
    uint64_t capacity;
    ring_count = attach_all(fds, &capacity);
    for (int i = 0; i < ring_count; i++) close(fds[i]);
    for (int i = 0; i < ring_count; i++) {
        rings[i].cpu = i;
        live[live_count++] = &rings[i];
    }
    for (int i = 0; i < ring_count; i++) take_buffer(&rings[i]);
    for (;;) {
        serve_all();
        flush();
        if (live_count == 0) return 0;
        wait_for_any();
    }
}
