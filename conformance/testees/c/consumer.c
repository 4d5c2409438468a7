// SPDX-License-Identifier: MIT
//
// A KMES consumer in one file of C11: copy from it what you need. It follows the specification
// (5.1), its errata (E..) and the testee contract, and needs only the C library. For each CPU, one
// thread drains the buffer, sleeps while it is empty, and takes the next one after a resize.
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kAttachCall = 1091, kAttachRetries = 5000, kMetadataBytes = 4096, kChunkBytes = 65536 };
struct metadata {  // 5.1.6, the first page of the mapping
    uint8_t magic[8];
    uint32_t version;
    uint16_t cpu_id, reserved0;
    uint64_t capacity, data_offset;
    _Atomic uint64_t generation;  // changes once the buffer is retired: never cached (E9)
    uint8_t reserved1[24];
    _Atomic uint64_t write_pos, tail_pos;
    uint8_t reserved2[48];
    _Atomic uint32_t futex_counter;
    _Atomic uint8_t need_wake;  // the only field that a consumer writes
};
struct __attribute__((packed)) header {  // of an event; the type follows
    uint32_t event_size, header_size;    // the payload begins at header_size
    uint64_t timestamp, sequence;
    uint16_t cpu_id;
    uint8_t origin_class;
    uint16_t type_len;
};
_Static_assert(offsetof(struct metadata, need_wake) == 132 && sizeof(struct header) == 29, "5.1.6");
struct consumer {  // of one CPU, private to its thread
    int cpu;
    pthread_t thread;
    struct metadata* meta;  // the mapping of the current buffer
    uint64_t capacity, generation;
    bool replaced;           // known to have a successor, whatever its generation shows
    uint64_t read_pos;       // in the current buffer
    uint64_t last_sequence;  // over all buffers of this CPU (E21); 0: none delivered yet
    struct header* event;    // the private copy, room for capacity bytes
    char report[4 * kChunkBytes];
    size_t used;
};
static int report_fd = 1, cpu_count;
static void flush(struct consumer* c) {  // whole lines in one write: threads do not mix
    for (size_t done = 0; done < c->used;) {
        const ssize_t written = write(report_fd, c->report + done, c->used - done);
        if (written < 0 && errno != EINTR) err(1, "cannot write the report");
        if (written > 0) done += (size_t)written;
    }
    c->used = 0;
}

// Adds to the report. A record has at most the hex digits of the longest type and some numbers.
#define PRINT(c, ...) ((c)->used += (size_t)sprintf((c)->report + (c)->used, __VA_ARGS__))
#define ACQUIRE(field) atomic_load_explicit(field, memory_order_acquire)
#define RELAXED(from) __atomic_load_n(from, __ATOMIC_RELAXED)

static bool may_pass(int error) {  // no rings yet; no memory, file or permission at present
    return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE ||
           error == EPERM;
}

// Retries after a pause; an old buffer is already drained. Returns 0, or ERANGE: too few slots.
static int attach_all(int* fds, int* count, uint64_t* capacity) {
    for (int tries = 0; syscall(kAttachCall, fds, count, capacity) != 0; tries++) {
        if (errno == ERANGE) return ERANGE;
        if (!may_pass(errno) || tries == kAttachRetries) err(1, "kmes_attach");
        usleep(1000);
    }
    return 0;
}

// Returns the fd of the CPU's current buffer. Only one thread at a time has fds of all CPUs.
static int attach(int cpu, uint64_t* capacity, struct stat* identity) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    int count = cpu_count, fds[count];
    if (attach_all(fds, &count, capacity) != 0 || count != cpu_count) err(1, "kmes_attach: CPUs");
    for (int i = 0; i < count; i++)
        if (i != cpu) close(fds[i]);
    pthread_mutex_unlock(&lock);
    if (fstat(fds[cpu], identity) != 0) err(1, "fstat");
    return fds[cpu];
}

// Returns the reason to refuse a buffer, or NULL. Reserved bytes are not checked (later versions).
static const char* find_fault(const struct metadata* meta, uint64_t mapped) {
    if (memcmp(meta->magic, "KMESRING", 8) != 0) return "bad magic";
    if (meta->version != 1) return "unknown version";
    if ((mapped & (mapped - 1)) != 0 || mapped < 32 || mapped > SIZE_MAX / 4) return "bad capacity";
    if (meta->capacity != mapped) return "capacity is not what is mapped";  // E14
    return meta->data_offset != kMetadataBytes ? "bad data_offset" : NULL;
}

static bool refuse(struct consumer* c, const char* reason) {
    PRINT(c, "R %d %s\n", c->cpu, reason);
    return false;
}

// 5.1.8.3 steps 2 to 6, for the first and each later buffer. False if it refuses the buffer.
static bool take_buffer(struct consumer* c) {
    struct stat taken, current;
    uint64_t capacity = 0, ignored;
    const int fd = attach(c->cpu, &capacity, &taken);
    struct metadata* meta =
        mmap(NULL, kMetadataBytes + 2 * capacity, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);  // the mapping stays
    if (meta == MAP_FAILED) return refuse(c, "cannot be mapped");
    if (c->meta != NULL) munmap(c->meta, kMetadataBytes + 2 * c->capacity);
    c->meta = meta;
    c->capacity = capacity;
    const char* fault = find_fault(meta, capacity);
    if (fault != NULL) return refuse(c, fault);
    if ((c->event = realloc(c->event, capacity)) == NULL) err(1, "realloc");
    // E19: a buffer retired since the attach already shows its successor's generation, so no change
    // would follow. If it still is the CPU's current buffer, the generation is its own.
    c->generation = ACQUIRE(&meta->generation);
    close(attach(c->cpu, &ignored, &current));
    c->replaced = taken.st_ino != current.st_ino || taken.st_dev != current.st_dev;
    // E11: positions of the old buffer say nothing about this one. Start at its oldest event (E21).
    c->read_pos = ACQUIRE(&meta->tail_pos);
    PRINT(c, "G %d %lu\n", c->cpu, c->generation);
    return true;
}

// The producer may overwrite the bytes during the copy: each access is atomic, a word if possible.
static void copy_relaxed(uint8_t* to, const uint8_t* from, size_t size) {
    for (size_t step; size > 0; to += step, from += step, size -= step) {
        step = size >= 8 && (uintptr_t)from % 8 == 0 ? 8 : 1;
        const uint64_t piece = step == 8 ? RELAXED((const uint64_t*)from) : RELAXED(from);
        memcpy(to, &piece, step);  // little-endian
    }
}

// 5.1.8.1 step 4: a private copy of the event (E6). False if its sizes are impossible: they may be
// torn (E7). An event of more than half of the capacity can have survived a shrink.
static bool copy_event(struct consumer* c, uint64_t readable) {
    const uint8_t* from = (const uint8_t*)c->meta + kMetadataBytes;
    from += c->read_pos & (c->capacity - 1);  // 5.1.4: in one piece from here
    struct header header;
    if (readable < sizeof header || readable > c->capacity) return false;
    copy_relaxed((uint8_t*)&header, from, sizeof header);
    if (header.type_len == 0 || header.header_size < sizeof header + header.type_len) return false;
    if (header.event_size < header.header_size || header.event_size > readable) return false;
    copy_relaxed((uint8_t*)c->event, from, header.event_size);
    return true;
}

// Reports the copied event, unless an earlier buffer contained it too. False: the end event.
static bool deliver(struct consumer* c) {
    const struct header* event = c->event;
    const uint8_t* type = (const uint8_t*)(event + 1);
    const uint8_t* payload = (const uint8_t*)event + event->header_size;
    const uint32_t length = event->event_size - event->header_size;
    if (event->sequence <= c->last_sequence) return true;
    const uint64_t lost = event->sequence - c->last_sequence - 1;  // 5.1.9
    if (c->last_sequence != 0 && lost > 0) PRINT(c, "L %d %lu\n", c->cpu, lost);
    c->last_sequence = event->sequence;
    PRINT(c, "E %d %lu %lu %u ", c->cpu, event->sequence, event->timestamp, event->origin_class);
    for (uint32_t i = 0; i < event->type_len; i++) PRINT(c, "%02x", type[i]);
    uint64_t digest = 0xcbf29ce484222325;  // FNV-1a
    for (uint32_t i = 0; i < length; i++) digest = (digest ^ payload[i]) * 0x100000001b3;
    PRINT(c, " %u %016lx\n", length, digest);
    if (c->used >= kChunkBytes) flush(c);
    return event->type_len != 20 || memcmp(type, "kmes.conformance.end", 20) != 0;
}

// 5.1.8.1. False if this CPU has ended. Each move of read_pos leads back to step 1 (E20).
static bool drain(struct consumer* c) {
    for (;;) {
        const uint64_t write_pos = ACQUIRE(&c->meta->write_pos);  // step 1
        if (c->read_pos >= write_pos) return true;
        const bool lapped = ACQUIRE(&c->meta->tail_pos) > c->read_pos;  // step 2
        const bool sound = !lapped && copy_event(c, write_pos - c->read_pos);
        atomic_thread_fence(memory_order_acquire);  // E4: the copy is done before the next load
        const uint64_t tail_pos = ACQUIRE(&c->meta->tail_pos);  // step 5
        if (tail_pos > c->read_pos) {
            c->read_pos = tail_pos;  // lapped, or torn
        } else {
            if (!sound) return refuse(c, "corrupt event");
            if (!deliver(c)) return false;
            c->read_pos += c->event->event_size;  // step 6
        }
    }
}

static bool is_retired(const struct consumer* c) {  // by any change, not only plus one (E15)
    return c->replaced || ACQUIRE(&c->meta->generation) != c->generation;
}

// 5.1.8.2, alone on the buffer (E12). Returns when there may be work.
static void sleep_until_woken(struct consumer* c) {
    struct metadata* meta = c->meta;
    // E2: the counter first, so that an event from here on makes futex_wait return.
    uint32_t counter = ACQUIRE(&meta->futex_counter);
    atomic_store_explicit(&meta->need_wake, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);  // E1: we see the event or they see the flag
    const bool idle = ACQUIRE(&meta->write_pos) <= c->read_pos && !is_retired(c);  // E3: both
    // Shared, not FUTEX_WAIT_PRIVATE (E17). Whatever ends it counts as a wake.
    if (idle && syscall(SYS_futex, &meta->futex_counter, FUTEX_WAIT, counter, NULL, NULL, 0) != 0 &&
        errno != EAGAIN && errno != EINTR)
        err(1, "futex");
    atomic_store_explicit(&meta->need_wake, 0, memory_order_relaxed);
}

static void* consume(void* argument) {
    struct consumer* c = argument;
    bool more = take_buffer(c);
    while (more) {
        // Before the drain, which then sees the last write_pos of a retired buffer (E24) and
        // delivers all of it, even if the next buffer is too small for that (E10).
        const bool retired = is_retired(c);
        more = drain(c);
        flush(c);
        if (more && !retired) sleep_until_woken(c);
        if (more && retired) more = take_buffer(c);
    }
    flush(c);
    return NULL;
}

int main(void) {
    const char* fd = getenv("KMES_REPORT_FD");
    if (fd != NULL) report_fd = atoi(fd);
    uint64_t capacity = 0;
    if (attach_all(NULL, &cpu_count, &capacity) != ERANGE) err(1, "kmes_attach: number of CPUs");
    struct consumer* consumers = calloc((size_t)cpu_count, sizeof *consumers);
    if (consumers == NULL) err(1, "calloc");
    for (int cpu = 0; cpu < cpu_count; cpu++) {
        consumers[cpu].cpu = cpu;
        if (pthread_create(&consumers[cpu].thread, NULL, consume, &consumers[cpu]) != 0)
            errx(1, "pthread_create failed");
    }
    for (int cpu = 0; cpu < cpu_count; cpu++) pthread_join(consumers[cpu].thread, NULL);
    return 0;
}
