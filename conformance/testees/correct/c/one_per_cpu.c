// SPDX-License-Identifier: MIT
//
// A thread for each CPU, each with its own attachment. The build chooses how it stores the flag,
// fences, checks again, spins and waits. Every choice is correct.
//
//   STORE   how need_wake becomes 1, with a full barrier    CLEAR  how it becomes 0, or not at all
//   COUNTER whether futex_counter is read before or after the flag's store
//   RECHECK the order of the second check                   SPIN   how long, and when; TURNS
//   WAIT    the system call                                 LOSS   whether L records are written
#include "contract.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdatomic.h>
#include <x86intrin.h>

#define BYTE_SEQ_CST 1
#define BYTE_FENCE 2
#define BYTE_EXCHANGE 3
#define BYTE_LOCK_OR_STACK 4
#define BYTE_MFENCE 5
#define BYTE_MEMBARRIER 6
#define BYTE_LOCK_OR 7
#define WORD_SEQ_CST 8
#define WORD_EXCHANGE 9
#define WORD_RELEASE_MFENCE 10
#define BYTE_COMPARE_EXCHANGE 11
#define BYTE_MUTEX 12
#define WORD_BIT_TEST_SET 13
#define CLEAR_PLAIN 1
#define CLEAR_RELEASE 2
#define CLEAR_SEQ_CST 3
#define CLEAR_WORD 4
#define CLEAR_NEVER 5
#define CLEAR_LOCK_AND 6
#define CLEAR_LAZILY 7
#define COUNTER_FIRST 1
#define COUNTER_AFTER 2
#define COUNTER_BOTH 3
#define RECHECK_POSITION_FIRST 1
#define RECHECK_GENERATION_FIRST 2
#define RECHECK_WITH_TAIL 3
#define SPIN_NONE 0
#define SPIN_COUNT 1
#define SPIN_TSC 2
#define SPIN_CLOCK 3
#define SPIN_BEFORE_FLAG 4
#define WAIT_PLAIN 1
#define WAIT_RELATIVE 2
#define WAIT_BITSET 3
#define WAIT_BITSET_MONOTONIC 4
#define WAIT_BITSET_REALTIME 5
#define WAIT_FUTEX2 6
#define WAIT_WHILE_SAME 7

#ifndef STORE
#define STORE BYTE_SEQ_CST
#endif
#ifndef CLEAR
#define CLEAR CLEAR_PLAIN
#endif
#ifndef COUNTER
#define COUNTER COUNTER_FIRST
#endif
#ifndef RECHECK
#define RECHECK RECHECK_POSITION_FIRST
#endif
#ifndef SPIN
#define SPIN SPIN_NONE
#endif
#ifndef TURNS
#define TURNS 200
#endif
#ifndef WAIT
#define WAIT WAIT_PLAIN
#endif
#ifndef LOSS
#define LOSS 0
#endif

struct reader {
    int cpu, cpus, fd;
    unsigned char* ring;
    uint64_t capacity, generation, position, last;
    unsigned char* copy;
    size_t copy_room;
    struct report report;
    bool over;
};

static uint64_t load(const struct reader* reader, int at) {
    return atomic_load_explicit((_Atomic uint64_t*)(reader->ring + at), memory_order_acquire);
}

static uint32_t counter_of(const struct reader* reader) {
    return atomic_load_explicit((_Atomic uint32_t*)(reader->ring + AT_FUTEX_COUNTER),
                                memory_order_acquire);
}

static void refuse(struct reader* reader, const char* reason) {
    report_refusal(&reader->report, reader->cpu, reason);
    reader->over = true;
}

// Takes this CPU's buffer out of a fresh attachment; the other fds are closed at once. A swap after
// the attachment shows in `generation` at the latest when the retired buffer is nudged (E19).
static void open_ring(struct reader* reader) {
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    int fds[reader->cpus];
    // One thread at a time holds all fds: many threads would exceed the limit.
    pthread_mutex_lock(&one_at_a_time);
    attach_again(fds, reader->cpus, &reader->capacity);
    for (int i = 0; i < reader->cpus; i++)
        if (i != reader->cpu) close(fds[i]);
    pthread_mutex_unlock(&one_at_a_time);
    reader->fd = fds[reader->cpu];
    reader->ring = map_ring(reader->fd, reader->capacity);
    const char* reason = refusal_of(reader->ring, reader->capacity);
    if (reason != NULL) {
        refuse(reader, reason);
        return;
    }
    reader->generation = load(reader, AT_GENERATION);
    reader->position = load(reader, AT_TAIL_POS);
}

// Copies one event out of the ring. 1: here it is; 0: there is none; -1: try again.
static int take(struct reader* reader, struct shape* shape) {
    uint64_t end = load(reader, AT_WRITE_POS);
    if (reader->position >= end) return 0;
    uint64_t tail = load(reader, AT_TAIL_POS);
    if (reader->position < tail) {
        reader->position = tail;
        return -1;
    }
    const unsigned char* at =
        reader->ring + METADATA_BYTES + (reader->position & (reader->capacity - 1));
    uint64_t room = room_within(end - reader->position, reader->capacity);
    bool whole = shape_of(at, room, shape);
    if (whole) {
        if (reader->copy_room < shape->event_size) {
            reader->copy_room = 2 * (size_t)shape->event_size;
            free(reader->copy);
            reader->copy = malloc(reader->copy_room);
            if (reader->copy == NULL) err(1, "malloc");
        }
        memcpy(reader->copy, at, shape->event_size);
    }
    atomic_thread_fence(memory_order_acquire);
    tail = load(reader, AT_TAIL_POS);
    if (tail > reader->position) {
        reader->position = tail;
        return -1;
    }
    if (!whole) {
        refuse(reader, "corrupt content");
        return 0;
    }
    reader->position += shape->event_size;
    return 1;
}

static void drain(struct reader* reader) {
    struct shape shape;
    for (;;) {
        int got = take(reader, &shape);
        if (got == 0) break;
        if (got < 0 || shape.sequence <= reader->last) continue;
        if (LOSS && reader->last != 0 && shape.sequence != reader->last + 1)
            report_line(&reader->report, 'L', reader->cpu, shape.sequence - reader->last - 1);
        reader->last = shape.sequence;
        report_event(&reader->report, reader->cpu, reader->copy, &shape);
        reader->over = is_the_end(reader->copy, &shape);
        if (reader->over) break;
        if (reader->report.length > 1 << 20) report_flush(&reader->report);
    }
    report_flush(&reader->report);
}

#if STORE == BYTE_MUTEX
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
#endif

static void raise_flag(struct reader* reader) {
    unsigned char* byte = reader->ring + AT_NEED_WAKE;
    _Atomic uint8_t* flag = (_Atomic uint8_t*)byte;
    _Atomic uint32_t* word = (_Atomic uint32_t*)byte;
    (void)byte, (void)flag, (void)word;
#if STORE == BYTE_SEQ_CST
    atomic_store(flag, 1);
#elif STORE == BYTE_FENCE
    atomic_store_explicit(flag, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
#elif STORE == BYTE_EXCHANGE
    atomic_exchange_explicit(flag, 1, memory_order_acq_rel);
#elif STORE == BYTE_LOCK_OR_STACK
    atomic_store_explicit(flag, 1, memory_order_release);
    __asm__ volatile("lock; orl $0, -4(%%rsp)" ::: "memory", "cc");
#elif STORE == BYTE_MFENCE
    *(volatile uint8_t*)byte = 1;
    _mm_mfence();
#elif STORE == BYTE_MEMBARRIER
    atomic_store_explicit(flag, 1, memory_order_release);
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) != 0) err(1, "membarrier");
#elif STORE == BYTE_LOCK_OR
    atomic_fetch_or(flag, 1);
#elif STORE == WORD_SEQ_CST
    atomic_store(word, 1);
#elif STORE == WORD_EXCHANGE
    atomic_exchange(word, 1);
#elif STORE == WORD_RELEASE_MFENCE
    atomic_store_explicit(word, 1, memory_order_release);
    _mm_mfence();
#elif STORE == BYTE_COMPARE_EXCHANGE
    uint8_t zero = 0;
    if (!atomic_compare_exchange_strong(flag, &zero, 1) && zero != 1) atomic_store(flag, 1);
#elif STORE == BYTE_MUTEX
    // Locking a mutex is a full barrier on this machine: `lock cmpxchg`.
    atomic_store_explicit(flag, 1, memory_order_release);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
#elif STORE == WORD_BIT_TEST_SET
    __asm__ volatile("lock; btsl $0, %0" : "+m"(*(uint32_t*)byte)::"memory", "cc");
#endif
    atomic_signal_fence(memory_order_seq_cst);
}

static void lower_flag(struct reader* reader) {
    unsigned char* byte = reader->ring + AT_NEED_WAKE;
    (void)byte;
#if CLEAR == CLEAR_PLAIN || CLEAR == CLEAR_LAZILY
    *(volatile uint8_t*)byte = 0;
#elif CLEAR == CLEAR_RELEASE
    atomic_store_explicit((_Atomic uint8_t*)byte, 0, memory_order_release);
#elif CLEAR == CLEAR_SEQ_CST
    atomic_store((_Atomic uint8_t*)byte, 0);
#elif CLEAR == CLEAR_WORD
    atomic_store_explicit((_Atomic uint32_t*)byte, 0, memory_order_relaxed);
#elif CLEAR == CLEAR_LOCK_AND
    atomic_fetch_and((_Atomic uint8_t*)byte, 0xfe);
#endif
}

static bool changed(const struct reader* reader) {
    return load(reader, AT_GENERATION) != reader->generation;
}

static bool something_there(const struct reader* reader) {
#if RECHECK == RECHECK_POSITION_FIRST
    return load(reader, AT_WRITE_POS) > reader->position || changed(reader);
#elif RECHECK == RECHECK_GENERATION_FIRST
    return changed(reader) || load(reader, AT_WRITE_POS) > reader->position;
#elif RECHECK == RECHECK_WITH_TAIL
    uint64_t tail = load(reader, AT_TAIL_POS), end = load(reader, AT_WRITE_POS);
    bool other = changed(reader);
    return tail > reader->position || end > reader->position || other;
#endif
}

// A bounded spin. True if there is work.
static bool spin(const struct reader* reader) {
#if SPIN == SPIN_COUNT || SPIN == SPIN_BEFORE_FLAG
    for (int i = 0; i < TURNS; i++) {
        if (load(reader, AT_WRITE_POS) > reader->position) return true;
        _mm_pause();
    }
#elif SPIN == SPIN_TSC
    uint64_t until = __rdtsc() + 50000;
    do {
        if (load(reader, AT_WRITE_POS) > reader->position) return true;
        _mm_pause();
    } while (__rdtsc() < until);
#elif SPIN == SPIN_CLOCK
    struct timespec now, start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        if (load(reader, AT_WRITE_POS) > reader->position) return true;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000000000 + now.tv_nsec - start.tv_nsec < 30000);
#else
    (void)reader;
#endif
    return false;
}

static void wait_for_wake(struct reader* reader, uint32_t seen) {
    uint32_t* counter = (uint32_t*)(reader->ring + AT_FUTEX_COUNTER);
    struct timespec time = {.tv_nsec = 50 * 1000 * 1000};
    (void)time;
#if WAIT == WAIT_PLAIN
    syscall(SYS_futex, counter, FUTEX_WAIT, seen, NULL, NULL, 0);
#elif WAIT == WAIT_RELATIVE
    syscall(SYS_futex, counter, FUTEX_WAIT, seen, &time, NULL, 0);
#elif WAIT == WAIT_BITSET
    syscall(SYS_futex, counter, FUTEX_WAIT_BITSET, seen, NULL, NULL, FUTEX_BITSET_MATCH_ANY);
#elif WAIT == WAIT_BITSET_MONOTONIC
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec += 2;
    syscall(SYS_futex, counter, FUTEX_WAIT_BITSET, seen, &time, NULL, FUTEX_BITSET_MATCH_ANY);
#elif WAIT == WAIT_BITSET_REALTIME
    clock_gettime(CLOCK_REALTIME, &time);
    time.tv_nsec += 70 * 1000 * 1000;
    time.tv_sec += time.tv_nsec / 1000000000;
    time.tv_nsec %= 1000000000;
    syscall(SYS_futex, counter, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, seen, &time, NULL, 1);
#elif WAIT == WAIT_FUTEX2
    // futex_wait of Linux 6.7: shared, 32 bits. Older kernels have FUTEX_WAIT.
    long result = syscall(455, counter, (unsigned long)seen, 0xfffffffful, 2u, NULL, 1);
    if (result != 0 && errno == ENOSYS)
        syscall(SYS_futex, counter, FUTEX_WAIT, seen, NULL, NULL, 0);
#elif WAIT == WAIT_WHILE_SAME
    // A wake without a new counter is spurious.
    while (counter_of(reader) == seen) syscall(SYS_futex, counter, FUTEX_WAIT, seen, NULL, NULL, 0);
#endif
}

static void rest(struct reader* reader) {
    if (SPIN == SPIN_BEFORE_FLAG && spin(reader)) return;
    uint32_t seen = counter_of(reader);
    raise_flag(reader);
    if (COUNTER == COUNTER_AFTER) seen = counter_of(reader);
    bool skip = COUNTER == COUNTER_BOTH && counter_of(reader) != seen;
    if (!skip && !something_there(reader) && (SPIN == SPIN_BEFORE_FLAG || !spin(reader)))
        wait_for_wake(reader, seen);
    // CLEAR_LAZILY leaves the flag set after a spurious wake.
    if (CLEAR != CLEAR_LAZILY || something_there(reader)) lower_flag(reader);
}

static void* run(void* argument) {
    struct reader* reader = argument;
    open_ring(reader);
    while (!reader->over) {
        // The order is that of E24: `generation`, and then write_pos once more.
        bool retired = changed(reader);
        drain(reader);
        if (reader->over) break;
        if (!retired) {
            rest(reader);
            continue;
        }
        unmap_ring(reader->ring, reader->capacity);
        close(reader->fd);
        open_ring(reader);
        if (!reader->over) report_line(&reader->report, 'G', reader->cpu, reader->generation);
    }
    report_flush(&reader->report);
    return NULL;
}

int main(void) {
    int cpus = count_cpus();
    struct reader* readers = calloc((size_t)cpus, sizeof *readers);
    pthread_t* threads = calloc((size_t)cpus, sizeof *threads);
    if (readers == NULL || threads == NULL) err(1, "calloc");
    for (int i = 0; i < cpus; i++) {
        readers[i] = (struct reader){.cpu = i, .cpus = cpus};
        if (pthread_create(&threads[i], NULL, run, &readers[i]) != 0) errx(1, "pthread_create");
    }
    for (int i = 0; i < cpus; i++) pthread_join(threads[i], NULL);
    return 0;
}
