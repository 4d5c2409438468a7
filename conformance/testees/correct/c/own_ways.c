// SPDX-License-Identifier: MIT
//
// A thread for each CPU, with unusual means in place of the usual ones:
//
//   PLACE  0: the kernel chooses its address; 1: between two guard pages, unmapped together
//          with the ring; 2: likewise, but another mapping placed over the ring removes it
//   LOADS  0: loads; 1: one gather of both positions and of two words on the stack
//   COPY   0: memcpy; 1: process_vm_readv, by the thread's own id
//   HALVES 1: mmap and futex get arguments with bits set above the 32 that the kernel reads
//   RELAY  1: a signal ends each thread in its sleep, and another thread continues its work
//   BESIDE 1: the first thread has ended, and each sleep has a limit; 2: a thread that touches no
//          ring spends most of its time in the kernel, and each sleep has a limit
#include "contract.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/uio.h>

#ifndef PLACE
#define PLACE 0
#endif
#ifndef LOADS
#define LOADS 0
#endif
#ifndef COPY
#define COPY 0
#endif
#ifndef HALVES
#define HALVES 0
#endif
#ifndef RELAY
#define RELAY 0
#endif
#ifndef BESIDE
#define BESIDE 0
#endif

enum { FENCE_BYTES = 4096 };

struct source {
    int index, count;
    unsigned char *ring, *copy;
    size_t copy_room;
    uint64_t capacity, generation, at, last;
    struct report report;
    pthread_t thread;
    bool begun, over;
};

static uint64_t load(const struct source* source, int at) {
    return atomic_load_explicit((_Atomic uint64_t*)(source->ring + at), memory_order_acquire);
}

static void give_up(struct source* source, const char* reason) {
    if (reason != NULL) report_refusal(&source->report, source->index, reason);
    source->over = true;
}

// -- System calls without libc --

// A compiler may leave any bits above an int in a register.
#define ABOVE(value) ((long)((unsigned long)(unsigned)(value) | 0x7ead5eed00000000u))

static long raw_call(long number, long a, long b, long c, long d, long e, long f) {
    register long d_in __asm__("r10") = d;
    register long e_in __asm__("r8") = e;
    register long f_in __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(d_in), "r"(e_in), "r"(f_in)
                     : "rcx", "r11", "memory");
    return result;
}

// -- The address of the ring --

static unsigned char* place_ring(int fd, uint64_t capacity) {
    size_t length = METADATA_BYTES + 2 * capacity;
    if (HALVES) {
        long ring = raw_call(ABOVE(SYS_mmap), 0, (long)length, PROT_READ | PROT_WRITE, MAP_SHARED,
                             ABOVE(fd), 0);
        if (ring < 0 && ring > -4096) errx(1, "mmap: error %ld", -ring);
        return (unsigned char*)ring;
    }
    if (PLACE == 0) return map_ring(fd, capacity);
    unsigned char* all = mmap(NULL, length + 2 * FENCE_BYTES, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED) err(1, "mmap");
    void* ring =
        mmap(all + FENCE_BYTES, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
    if (ring == MAP_FAILED) err(1, "mmap of the ring");
    return ring;
}

static void take_away(unsigned char* ring, uint64_t capacity) {
    size_t length = METADATA_BYTES + 2 * capacity;
    if (PLACE == 2 &&
        mmap(ring, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0) == MAP_FAILED)
        err(1, "mmap over the ring");
    if (PLACE == 0) {
        unmap_ring(ring, capacity);
    } else if (munmap(ring - FENCE_BYTES, length + 2 * FENCE_BYTES) != 0) {
        err(1, "munmap");
    }
}

static void open_source(struct source* source) {
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    int fds[source->count];
    pthread_mutex_lock(&one_at_a_time);
    attach_again(fds, source->count, &source->capacity);
    source->ring = place_ring(fds[source->index], source->capacity);
    for (int i = 0; i < source->count; i++) close(fds[i]);
    pthread_mutex_unlock(&one_at_a_time);
    const char* reason = refusal_of(source->ring, source->capacity);
    if (reason != NULL) {
        give_up(source, reason);
        return;
    }
    source->generation = load(source, AT_GENERATION);
    source->at = load(source, AT_TAIL_POS);
}

// -- How it is read --

struct positions {
    uint64_t write_pos, tail_pos;
};

// By its definition, the instruction loads elements in any order. That is enough for the first
// check: an old tail_pos is harmless there, because it is loaded again after the copy.
static struct positions gathered(const struct source* source) {
    uint64_t own[2] = {source->at, ~source->at};
    const void* at[4] = {source->ring + AT_WRITE_POS, &own[0], source->ring + AT_TAIL_POS, &own[1]};
    uint64_t got[4];
    __asm__ volatile(
        "vmovdqu (%[at]), %%ymm1\n\t"
        "vpcmpeqd %%ymm2, %%ymm2, %%ymm2\n\t"
        "vpgatherqq %%ymm2, (%[zero],%%ymm1,1), %%ymm0\n\t"
        "vmovdqu %%ymm0, (%[got])\n\t"
        "vzeroupper"
        :
        : [at] "r"(at), [got] "r"(got), [zero] "r"(0L)
        : "memory", "xmm0", "xmm1", "xmm2");
    if (got[1] != own[0] || got[3] != own[1]) errx(1, "a gather did not read this thread's words");
    return (struct positions){got[0], got[2]};
}

static struct positions load_positions(const struct source* source) {
    if (LOADS == 1 && __builtin_cpu_supports("avx2")) return gathered(source);
    struct positions positions = {load(source, AT_WRITE_POS), 0};
    positions.tail_pos = load(source, AT_TAIL_POS);
    return positions;
}

static void copy(struct source* source, const unsigned char* event, uint32_t size) {
    if (source->copy_room < size) {
        free(source->copy);
        source->copy = malloc(source->copy_room = 2 * (size_t)size);
        if (source->copy == NULL) err(1, "malloc");
    }
    if (COPY == 0) {
        memcpy(source->copy, event, size);
        return;
    }
    struct iovec to = {source->copy, size}, from = {(void*)event, size};
    if (process_vm_readv((pid_t)syscall(SYS_gettid), &to, 1, &from, 1, 0) != (ssize_t)size)
        err(1, "process_vm_readv");
}

// One event at the most; false if there is none.
static bool one(struct source* source) {
    for (;;) {
        struct positions positions = load_positions(source);
        if (positions.write_pos <= source->at) return false;
        struct shape shape = {0};
        bool whole = false;
        if (positions.tail_pos <= source->at) {
            uint64_t room = room_within(positions.write_pos - source->at, source->capacity);
            const unsigned char* event =
                source->ring + METADATA_BYTES + (source->at & (source->capacity - 1));
            whole = shape_of(event, room, &shape);
            if (whole) copy(source, event, shape.event_size);
        }
        atomic_thread_fence(memory_order_acquire);
        uint64_t tail = load(source, AT_TAIL_POS);
        if (tail > source->at) {
            source->at = tail;
            continue;
        }
        if (!whole) {
            give_up(source, "lengths that do not fit each other");
            return false;
        }
        source->at += shape.event_size;
        if (shape.sequence <= source->last) continue;
        source->last = shape.sequence;
        report_event(&source->report, source->index, source->copy, &shape);
        if (is_the_end(source->copy, &shape)) give_up(source, NULL);
        return true;
    }
}

// -- How it sleeps, and in which thread --

static void mask_relief(int how) {
    sigset_t relief;
    sigemptyset(&relief);
    sigaddset(&relief, SIGUSR1);
    pthread_sigmask(how, &relief, NULL);
}

static void be_relieved(int signal) {
    (void)signal;
    pthread_exit(NULL);
}

// A thread may end in its wait and nowhere else. (pthread_cancel cannot do this: its handler in
// glibc 2.36 ignores the cancel state, and ends a thread that has left the wait.)
static void sleep_on(uint32_t* counter, uint32_t seen) {
    const struct timespec limit = {0, 50000000};
    if (RELAY) mask_relief(SIG_UNBLOCK);
    if (HALVES)
        raw_call(ABOVE(SYS_futex), (long)counter, ABOVE(FUTEX_WAIT), ABOVE(seen), 0, 0, ABOVE(0));
    else
        syscall(SYS_futex, counter, FUTEX_WAIT, seen, BESIDE ? &limit : NULL, NULL, 0);
    if (RELAY) mask_relief(SIG_BLOCK);
}

static void rest(struct source* source) {
    _Atomic uint32_t* counter = (_Atomic uint32_t*)(source->ring + AT_FUTEX_COUNTER);
    _Atomic uint8_t* flag = (_Atomic uint8_t*)(source->ring + AT_NEED_WAKE);
    uint32_t seen = atomic_load(counter);
    atomic_store(flag, 1);
    if (load(source, AT_WRITE_POS) <= source->at &&
        load(source, AT_GENERATION) == source->generation)
        sleep_on((uint32_t*)counter, seen);
    atomic_store(flag, 0);
}

static void* run(void* argument) {
    struct source* source = argument;
    if (!source->begun) open_source(source);
    source->begun = true;
    while (!source->over) {
        bool retired = load(source, AT_GENERATION) != source->generation;
        while (!source->over && one(source)) {
        }
        report_flush(&source->report);
        if (source->over) break;
        if (!retired) {
            rest(source);
            continue;
        }
        take_away(source->ring, source->capacity);
        open_source(source);
        if (!source->over) report_line(&source->report, 'G', source->index, source->generation);
    }
    report_flush(&source->report);
    return NULL;
}

static void begin(struct source* source) {
    if (pthread_create(&source->thread, NULL, run, source) != 0) errx(1, "pthread_create");
}

// MEMBARRIER_CMD_GLOBAL: the kernel waits until every processor has passed a quiescent state.
static void* barriers(void* nothing) {
    const struct timespec pause = {0, 3000000};
    for (;;) {
        syscall(SYS_membarrier, 1, 0, 0);
        nanosleep(&pause, NULL);
    }
    return nothing;
}

int main(void) {
    int count = count_cpus();
    struct source* sources = calloc((size_t)count, sizeof *sources);
    if (sources == NULL) err(1, "calloc");
    mask_relief(SIG_BLOCK);
    signal(SIGUSR1, be_relieved);
    for (int i = 0; i < count; i++) {
        sources[i].index = i;
        sources[i].count = count;
        begin(&sources[i]);
    }
    pthread_t beside;
    if (BESIDE == 1) pthread_exit(NULL);  // the last one to end ends the process
    if (BESIDE == 2 && pthread_create(&beside, NULL, barriers, NULL) != 0) errx(1, "no thread");
    wait_a_moment();
    for (int i = 0; RELAY && i < count; i++) {
        pthread_kill(sources[i].thread, SIGUSR1);
        pthread_join(sources[i].thread, NULL);
        begin(&sources[i]);  // the new thread exits at once if its CPU has ended
    }
    for (int i = 0; i < count; i++) pthread_join(sources[i].thread, NULL);
    return 0;
}
