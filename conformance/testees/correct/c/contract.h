// SPDX-License-Identifier: MIT
//
// The parts of the testee contract that every consumer in this folder needs: system call 1091, the
// records, and the shape of an event. Each consumer reads its rings and sleeps in its own way.
#ifndef CORRECT_CONTRACT_H
#define CORRECT_CONTRACT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <err.h>
#include <errno.h>
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

enum {
    AT_VERSION = 8,
    AT_CAPACITY = 16,
    AT_DATA_OFFSET = 24,
    AT_GENERATION = 32,
    AT_WRITE_POS = 64,
    AT_TAIL_POS = 72,
    AT_FUTEX_COUNTER = 128,
    AT_NEED_WAKE = 132,
    METADATA_BYTES = 4096,
    EVENT_BYTES_MIN = 30,
};

// -- Attaching. Temporary errors (no rings yet, a shortage) are retried for five seconds. --

static inline void wait_a_moment(void) {
    struct timespec time = {0, 1000000};
    nanosleep(&time, NULL);
}

static inline int attach_once(int* fds, int* count, uint64_t* capacity) {
    return (int)syscall(1091, fds, count, capacity);
}

static inline bool may_pass(int error) {
    return error == EAGAIN || error == EINTR || error == ENOMEM || error == EMFILE ||
           error == ENFILE || error == EPERM;
}

// Attaches; waits and tries again on errors that may pass, and exits on others. Before the call,
// deliver and report the unread events of an old buffer.
static inline void attach_again(int* fds, int count, uint64_t* capacity) {
    for (int tries = 0;; tries++) {
        int slots = count;
        if (attach_once(fds, &slots, capacity) == 0) return;
        if (!may_pass(errno) || tries == 5000) err(1, "kmes_attach");
        wait_a_moment();
    }
}

// The number of CPUs, which kmes_attach returns if it is called with no slots.
static inline int count_cpus(void) {
    for (;;) {
        int count = 0;
        uint64_t capacity = 0;
        if (attach_once(NULL, &count, &capacity) != 0 && errno == ERANGE && count > 0) return count;
        if (errno != EAGAIN && errno != EINTR) err(1, "kmes_attach: number of CPUs");
        wait_a_moment();
    }
}

#ifndef RING_FLAGS
#define RING_FLAGS 0
#endif

static inline unsigned char* map_ring(int fd, uint64_t capacity) {
    void* ring = mmap(NULL, METADATA_BYTES + 2 * capacity, PROT_READ | PROT_WRITE,
                      MAP_SHARED | RING_FLAGS, fd, 0);
    if (ring == MAP_FAILED) err(1, "mmap");
    return (unsigned char*)ring;
}

static inline void unmap_ring(unsigned char* ring, uint64_t capacity) {
    if (munmap(ring, METADATA_BYTES + 2 * capacity) != 0) err(1, "munmap");
}

// The reason to refuse a buffer; NULL: accept it.
static inline const char* refusal_of(const unsigned char* ring, uint64_t mapped_capacity) {
    const volatile unsigned char* magic = ring;
    for (int i = 0; i < 8; i++)
        if (magic[i] != (unsigned char)"KMESRING"[i]) return "the magic is another";
    if (*(const volatile uint32_t*)(ring + AT_VERSION) != 1) return "the version is not 1";
    uint64_t capacity = *(const volatile uint64_t*)(ring + AT_CAPACITY);
    if ((capacity & (capacity - 1)) != 0) return "capacity is no power of two";
    // A consumer may refuse a capacity that no kernel accepts (docs/event-model.md).
    if (capacity < 64 * 1024 || capacity > 256 * 1024 * 1024) return "capacity is out of range";
    if (capacity != mapped_capacity) return "capacity is not what is mapped";
    if (*(const volatile uint64_t*)(ring + AT_DATA_OFFSET) != METADATA_BYTES)
        return "data_offset is not 4096";
    return NULL;
}

// -- An event. Each field is read once, so that its shape stays the same even in a ring. --

struct shape {
    uint32_t event_size, header_size;
    uint64_t timestamp, sequence;
    uint8_t origin;
    uint16_t type_len;
};

struct unaligned {
    union {
        uint16_t u16;
        uint32_t u32;
        uint64_t u64;
    } __attribute__((packed)) as;
} __attribute__((packed));

// The maximum bytes of an event if `published` bytes are unread. More than the capacity is corrupt
// content (E26), which leaves room for no event.
static inline uint64_t room_within(uint64_t published, uint64_t capacity) {
    return published <= capacity ? published : 0;
}

// False if these cannot be the lengths of an event of at most `room` bytes (E7).
static inline bool shape_of(const unsigned char* at, uint64_t room, struct shape* shape) {
    if (room < EVENT_BYTES_MIN) return false;
    shape->event_size = ((const volatile struct unaligned*)at)->as.u32;
    shape->header_size = ((const volatile struct unaligned*)(at + 4))->as.u32;
    shape->timestamp = ((const volatile struct unaligned*)(at + 8))->as.u64;
    shape->sequence = ((const volatile struct unaligned*)(at + 16))->as.u64;
    shape->origin = *(const volatile unsigned char*)(at + 26);
    shape->type_len = ((const volatile struct unaligned*)(at + 27))->as.u16;
    return shape->type_len > 0 && 29u + shape->type_len <= shape->header_size &&
           shape->header_size <= shape->event_size && shape->event_size <= room;
}

static inline bool is_the_end(const unsigned char* event, const struct shape* shape) {
    static const char name[] = "kmes.conformance.end";
    return shape->type_len == sizeof name - 1 && memcmp(event + 29, name, sizeof name - 1) == 0;
}

// -- Records. They are gathered in a text and written together: a write holds whole lines. --

struct report {
    char* text;
    size_t length, room;
};

static inline void report_room(struct report* report, size_t more) {
    if (report->length + more <= report->room) return;
    report->room = 2 * (report->length + more);
    report->text = (char*)realloc(report->text, report->room);
    if (report->text == NULL) err(1, "realloc");
}

static inline int report_fd(void) {
    const char* text = getenv("KMES_REPORT_FD");
    return text != NULL ? atoi(text) : 1;
}

static inline void report_flush(struct report* report) {
    if (report->length == 0) return;
    if (write(report_fd(), report->text, report->length) != (ssize_t)report->length)
        err(1, "the report");
    report->length = 0;
}

static inline void report_line(struct report* report, char kind, int cpu, uint64_t value) {
    report_room(report, 80);
    report->length += (size_t)sprintf(report->text + report->length, "%c %d %llu\n", kind, cpu,
                                      (unsigned long long)value);
}

static inline void report_refusal(struct report* report, int cpu, const char* reason) {
    report_room(report, 80 + strlen(reason));
    report->length += (size_t)sprintf(report->text + report->length, "R %d %s\n", cpu, reason);
}

static inline uint64_t fnv1a(const unsigned char* bytes, size_t length) {
    uint64_t digest = 0xcbf29ce484222325u;
    for (size_t i = 0; i < length; i++) digest = (digest ^ bytes[i]) * 0x100000001b3u;
    return digest;
}

static inline void report_event(struct report* report, int cpu, const unsigned char* event,
                                const struct shape* shape) {
    uint32_t payload = shape->event_size - shape->header_size;
    report_room(report, 160 + 2u * shape->type_len);
    char* to = report->text + report->length;
    to += sprintf(to, "E %d %llu %llu %u ", cpu, (unsigned long long)shape->sequence,
                  (unsigned long long)shape->timestamp, shape->origin);
    for (unsigned i = 0; i < shape->type_len; i++) {
        *to++ = "0123456789abcdef"[event[29 + i] >> 4];
        *to++ = "0123456789abcdef"[event[29 + i] & 15];
    }
    to += sprintf(to, " %u %016llx\n", payload,
                  (unsigned long long)fnv1a(event + shape->header_size, payload));
    report->length = (size_t)(to - report->text);
}

// -- Company: with WITH_HEARTBEAT a thread writes a comment now and then to say that it lives. --

#ifdef WITH_HEARTBEAT
#include <pthread.h>

static void* beat(void* unused) {
    (void)unused;
    for (unsigned long beats = 1;; beats++) {
        char line[80];
        int length = sprintf(line, "# alive, %lu\n", beats);
        if (write(report_fd(), line, (size_t)length) != length) err(1, "the report");
        struct timespec time = {0, 17000000};
        nanosleep(&time, NULL);
    }
    return NULL;
}

static void start_heartbeat(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, beat, NULL) != 0) errx(1, "pthread_create");
}
#else
static inline void start_heartbeat(void) {}
#endif

#endif
