// SPDX-License-Identifier: MIT
//
// One thread for all CPUs, which sleeps in futex_waitv on all their counters. A change of any
// generation makes it attach again and map every new buffer at once; the inode of an fd says which
// are new. It keeps one fd for each CPU, and writes the records of a round with one writev.
#include "contract.h"

#include <linux/futex.h>
#include <sys/uio.h>

struct ring {
    int fd;
    ino_t inode;
    unsigned char* base;
    uint64_t capacity, generation, position;
};

struct cpu {
    struct ring ring;
    uint64_t last;
    struct report report;
    bool over;
};

static int cpu_count, left;
static struct cpu* cpus;
static unsigned char* copy;
static size_t copy_room;

static uint64_t at64(const struct ring* ring, int at) {
    return __atomic_load_n((uint64_t*)(ring->base + at), __ATOMIC_ACQUIRE);
}

static void end_cpu(struct cpu* cpu) {
    cpu->over = true;
    left--;
}

// Delivers the published events of this ring, until a check finds no more.
static void drain(int index, struct ring* ring) {
    struct cpu* cpu = &cpus[index];
    while (!cpu->over) {
        uint64_t end = at64(ring, AT_WRITE_POS), tail = at64(ring, AT_TAIL_POS);
        if (ring->position >= end) return;
        if (ring->position < tail) {
            ring->position = tail;
            continue;
        }
        const unsigned char* event = ring->base + METADATA_BYTES + ring->position % ring->capacity;
        uint64_t most = room_within(end - ring->position, ring->capacity);
        struct shape shape;
        bool right = shape_of(event, most, &shape);
        if (right) {
            if (shape.event_size > copy_room) copy = realloc(copy, copy_room = shape.event_size);
            if (copy == NULL) err(1, "realloc");
            memcpy(copy, event, shape.event_size);
        }
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        tail = at64(ring, AT_TAIL_POS);
        if (tail > ring->position) {
            ring->position = tail;
        } else if (!right) {
            report_refusal(&cpu->report, index, "what is published here is no event");
            end_cpu(cpu);
        } else {
            ring->position += shape.event_size;
            if (shape.sequence <= cpu->last) continue;
            cpu->last = shape.sequence;
            report_event(&cpu->report, index, copy, &shape);
            if (is_the_end(copy, &shape)) end_cpu(cpu);
        }
    }
}

static void write_reports(void) {
    struct iovec parts[cpu_count];
    int count = 0;
    for (int i = 0; i < cpu_count; i++)
        if (cpus[i].report.length > 0)
            parts[count++] = (struct iovec){cpus[i].report.text, cpus[i].report.length};
    if (count > 0 && writev(report_fd(), parts, count) < 0) err(1, "writev");
    for (int i = 0; i < cpu_count; i++) cpus[i].report.length = 0;
}

static void let_go(struct ring* ring) {
    unmap_ring(ring->base, ring->capacity);
    close(ring->fd);
}

// Attaches, maps the new buffers, drains the old ones, and only then replaces these.
static void renew(void) {
    int fds[cpu_count];
    uint64_t capacity;
    attach_again(fds, cpu_count, &capacity);
    struct ring fresh[cpu_count];
    for (int i = 0; i < cpu_count; i++) {
        struct stat status;
        if (fstat(fds[i], &status) != 0) err(1, "fstat");
        fresh[i] = (struct ring){.fd = fds[i], .inode = status.st_ino, .capacity = capacity};
        bool same = cpus[i].ring.base != NULL && cpus[i].ring.inode == status.st_ino;
        if (cpus[i].over || same) {
            close(fds[i]);
            // The buffer is still in use after the attach, so this generation is its own (E19).
            if (same && !cpus[i].over) cpus[i].ring.generation = at64(&cpus[i].ring, AT_GENERATION);
        } else {
            fresh[i].base = map_ring(fds[i], capacity);
        }
    }
    for (int i = 0; i < cpu_count; i++) {
        struct cpu* cpu = &cpus[i];
        if (fresh[i].base == NULL) continue;
        bool first = cpu->ring.base == NULL;
        if (!first) {
            drain(i, &cpu->ring);
            let_go(&cpu->ring);
        }
        cpu->ring = fresh[i];
        if (cpu->over) continue;
        const char* reason = refusal_of(cpu->ring.base, capacity);
        if (reason != NULL) {
            report_refusal(&cpu->report, i, reason);
            end_cpu(cpu);
            continue;
        }
        cpu->ring.generation = at64(&cpu->ring, AT_GENERATION);
        cpu->ring.position = at64(&cpu->ring, AT_TAIL_POS);
        report_line(&cpu->report, 'G', i, cpu->ring.generation);
    }
}

static bool stale(const struct cpu* cpu) {
    return !cpu->over && at64(&cpu->ring, AT_GENERATION) != cpu->ring.generation;
}

static void rest(void) {
    struct futex_waitv waits[cpu_count];
    int count = 0;
    for (int i = 0; i < cpu_count; i++) {
        if (cpus[i].over) continue;
        uint32_t* counter = (uint32_t*)(cpus[i].ring.base + AT_FUTEX_COUNTER);
        waits[count++] = (struct futex_waitv){
            .val = __atomic_load_n(counter, __ATOMIC_ACQUIRE),
            .uaddr = (uintptr_t)counter,
            .flags = FUTEX_32,
        };
        __atomic_store_n(cpus[i].ring.base + AT_NEED_WAKE, 1, __ATOMIC_RELAXED);
    }
    // One barrier for all the flags.
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    bool busy = false;
    for (int i = 0; i < cpu_count; i++)
        if (!cpus[i].over)
            busy = busy || at64(&cpus[i].ring, AT_WRITE_POS) > cpus[i].ring.position ||
                   stale(&cpus[i]);
    if (!busy && syscall(SYS_futex_waitv, waits, count, 0, NULL, 0) < 0 && errno == ENOSYS)
        errx(1, "this kernel has no futex_waitv");
    for (int i = 0; i < cpu_count; i++)
        if (!cpus[i].over) __atomic_store_n(cpus[i].ring.base + AT_NEED_WAKE, 0, __ATOMIC_RELAXED);
}

int main(void) {
    cpu_count = left = count_cpus();
    cpus = calloc((size_t)cpu_count, sizeof *cpus);
    if (cpus == NULL) err(1, "calloc");
    renew();
    write_reports();
    while (left > 0) {
        bool change = false;
        for (int i = 0; i < cpu_count; i++) {
            change = change || stale(&cpus[i]);
            if (!cpus[i].over) drain(i, &cpus[i].ring);
        }
        write_reports();  // an attach that fails for long ends the program
        if (change) renew();
        write_reports();
        if (!change && left > 0) rest();
    }
    return 0;
}
