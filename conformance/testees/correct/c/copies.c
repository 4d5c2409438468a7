// SPDX-License-Identifier: MIT
//
// A thread for each CPU. COPY chooses the instructions that copy an event out of the ring. With
// -DPOSITIONS_TOGETHER one 16-byte load reads both positions, which these processors do in one
// piece; the positions are only a hint, because the tail is loaded again after the copy. With
// -DCLOSES_DATA the data have no access while the thread is idle; with -DFAULTS_OPEN_DATA too, the
// thread opens a page when it faults there.
#include "contract.h"

#include <immintrin.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>

#define BYTES 1
#define REP_MOVSB 2
#define MASKED_512 3
#define GATHER 4
#define PIECES_OF_64 5
#define LIBRARY 6
#define BACKWARDS 7
#define REP_MOVSQ 8
#define ALIGNED_AROUND 9
#define TOUCHING_AHEAD 10
#define LODSQ 11
#define LODSQ_LOW 12
#define PATCHED_CODE 13
#ifndef COPY
#define COPY LIBRARY
#endif

struct one {
    int cpu, fd;
    uint8_t *ring, *event;
    uint64_t capacity, generation, at, last;
    struct report report;
    bool over;
};

static int cpus;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

#if COPY == MASKED_512
__attribute__((target("avx512bw,avx512f"))) static void copy_out(uint8_t* to, const uint8_t* from,
                                                                 size_t size) {
    for (size_t done = 0; done < size; done += 64) {
        __mmask64 mask = size - done >= 64 ? ~0ull : (1ull << (size - done)) - 1;
        // The masked lanes may be beyond the mapping.
        _mm512_mask_storeu_epi8(to + done, mask, _mm512_maskz_loadu_epi8(mask, from + done));
    }
}
#elif COPY == GATHER
__attribute__((target("avx2"))) static void copy_out(uint8_t* to, const uint8_t* from,
                                                     size_t size) {
    size_t done = 0;
    const __m256i places = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    for (; size - done >= 32; done += 32)
        _mm256_storeu_si256((__m256i*)(to + done),
                            _mm256_i32gather_epi32((const int*)(from + done), places, 1));
    for (; done < size; done++) to[done] = ((const volatile uint8_t*)from)[done];
}
#elif COPY == REP_MOVSB
static void copy_out(uint8_t* to, const uint8_t* from, size_t size) {
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size)::"memory");
}
#elif COPY == REP_MOVSQ
static void copy_out(uint8_t* to, const uint8_t* from, size_t size) {
    size_t words = size / 8, rest = size % 8;
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(words)::"memory");
    while (rest-- > 0) __asm__ volatile("movsb" : "+D"(to), "+S"(from)::"memory");
}
#elif COPY == BYTES
static void copy_out(uint8_t* to, const uint8_t* from, size_t size) {
    for (size_t i = 0; i < size; i++) to[i] = ((const volatile uint8_t*)from)[i];
}
#elif COPY == LODSQ || COPY == LODSQ_LOW
#if COPY == LODSQ
#define LOAD "lodsq"
#else
#define LOAD "addr32 lodsq"
#endif
// The last load ends at the last byte of the event.
static void copy_out(uint8_t* to, const uint8_t* from, size_t size) {
    for (size_t done = 0; done < size; done += 8) {
        if (size - done < 8) done = size - 8;
        const uint8_t* source = from + done;
        uint64_t piece;
        __asm__ volatile(LOAD : "=a"(piece), "+S"(source)::"memory");
        memcpy(to + done, &piece, 8);
    }
}
#elif COPY == PATCHED_CODE
// Each thread loads by an instruction in a page of its own, which it changes for each event. The
// page is of a file, and is not writable while it is executable.
static _Thread_local uint8_t* code;

static void set_distance(uint8_t distance) {
    enum { PAGE_BYTES = 4096, DISTANCE_AT = 3 };
    static const uint8_t load_and_return[] = {0x48, 0x8b, 0x47, 0, 0xc3};  // mov 0(%rdi), %rax
    if (code == NULL) {
        int file = memfd_create("code", MFD_CLOEXEC);
        if (file < 0 || ftruncate(file, PAGE_BYTES) != 0) err(1, "memfd_create");
        if (write(file, load_and_return, sizeof load_and_return) < 0) err(1, "write");
        code = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
        if (code == MAP_FAILED) err(1, "mmap");
        close(file);
    }
    if (mprotect(code, PAGE_BYTES, PROT_READ | PROT_WRITE) != 0) err(1, "mprotect");
    code[DISTANCE_AT] = distance;
    if (mprotect(code, PAGE_BYTES, PROT_READ | PROT_EXEC) != 0) err(1, "mprotect");
}

static void copy_out(uint8_t* to, const uint8_t* from, size_t size) {
    static _Thread_local uint8_t distance;
    distance = (distance + 8) % 64;
    set_distance(distance);
    uint64_t (*load)(const uint8_t*) = (uint64_t (*)(const uint8_t*))(uintptr_t)code;
    size_t done = 0;
    for (; size - done >= 8; done += 8) {
        uint64_t piece = load(from + done - distance);
        memcpy(to + done, &piece, 8);
    }
    for (; done < size; done++) to[done] = ((const volatile uint8_t*)from)[done];
}
#elif COPY == BACKWARDS
static void copy_out(uint8_t* to, const uint8_t* from, size_t size) {
    while (size-- > 0) to[size] = ((const volatile uint8_t*)from)[size];
}
#elif COPY == PIECES_OF_64
static void copy_out(uint8_t* to, const uint8_t* from, size_t size) {
    size_t done = 0;
    for (; size - done >= 8; done += 8) {
        uint64_t piece = ((const volatile struct unaligned*)(from + done))->as.u64;
        memcpy(to + done, &piece, 8);
    }
    for (; done < size; done++) to[done] = ((const volatile uint8_t*)from)[done];
}
#elif COPY == ALIGNED_AROUND
// Aligned loads of 16 bytes around the event: more than the event, never more than the mapping.
static void copy_out(uint8_t* to, const uint8_t* from, size_t size) {
    const uint8_t* first = (const uint8_t*)((uintptr_t)from & ~15ul);
    size_t skip = (size_t)(from - first);
    uint8_t piece[16] __attribute__((aligned(16)));
    for (size_t done = 0; done < size + skip; done += 16) {
        _mm_store_si128((__m128i*)piece, _mm_load_si128((const __m128i*)(first + done)));
        for (size_t i = 0; i < 16; i++)
            if (done + i >= skip && done + i - skip < size) to[done + i - skip] = piece[i];
    }
}
#elif COPY == TOUCHING_AHEAD
// Reads the bytes after the event, published or not, to have them in the cache, and uses none of
// them. An event begins in the first half of the mapping, so all these bytes are mapped.
static void copy_out(uint8_t* to, const uint8_t* from, size_t size) {
    for (size_t ahead = 64; ahead <= 1024; ahead += 64) {
        _mm_prefetch((const char*)from + ahead + 1024, _MM_HINT_T0);
        (void)*(const volatile uint8_t*)(from + ahead);
    }
    memcpy(to, from, size);
}
#else
static void copy_out(uint8_t* to, const uint8_t* from, size_t size) {
    memcpy(to, from, size);
}
#endif

#ifdef CLOSES_DATA
static void protect(struct one* one, int protection) {
    if (mprotect(one->ring + METADATA_BYTES, 2 * one->capacity, protection) != 0)
        err(1, "mprotect");
}
#else
static void protect(struct one* one, int protection) {
    (void)one, (void)protection;
}
#endif

static _Thread_local struct one* mine;

static void open_page(int number, siginfo_t* info, void* context) {
    (void)context;
    enum { PAGE_BYTES = 4096 };
    uintptr_t first = (uintptr_t)mine->ring + METADATA_BYTES;
    uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)(PAGE_BYTES - 1);
    if (page - first >= 2 * mine->capacity || mprotect((void*)page, PAGE_BYTES, PROT_READ) != 0)
        signal(number, SIG_DFL);
}

static void open_data(struct one* one) {
#ifdef FAULTS_OPEN_DATA
    (void)one;
#else
    protect(one, PROT_READ);
#endif
}

static uint64_t word(struct one* one, int at) {
    return __atomic_load_n((uint64_t*)(one->ring + at), __ATOMIC_ACQUIRE);
}

static void positions(struct one* one, uint64_t* end, uint64_t* tail) {
#ifdef POSITIONS_TOGETHER
    __m128i both;
    __asm__ volatile("movdqa %1, %0"
                     : "=x"(both)
                     : "m"(*(__m128i*)(one->ring + AT_WRITE_POS))
                     : "memory");
    uint64_t values[2];
    _mm_storeu_si128((__m128i*)values, both);
    *end = values[0];
    *tail = values[1];
#else
    *end = word(one, AT_WRITE_POS);
    *tail = word(one, AT_TAIL_POS);
#endif
}

static bool start(struct one* one) {
    int fds[cpus];
    pthread_mutex_lock(&mutex);
    attach_again(fds, cpus, &one->capacity);
    for (int i = 0; i < cpus; i++)
        if (i != one->cpu) close(fds[i]);
    pthread_mutex_unlock(&mutex);
    one->fd = fds[one->cpu];
    one->ring = map_ring(one->fd, one->capacity);
    const char* reason = refusal_of(one->ring, one->capacity);
    if (reason != NULL) {
        report_refusal(&one->report, one->cpu, reason);
        report_flush(&one->report);
        return false;
    }
    one->event = realloc(one->event, one->capacity + 64);
    one->generation = word(one, AT_GENERATION);
    one->at = word(one, AT_TAIL_POS);
    protect(one, PROT_NONE);
    return true;
}

// Skips corrupt content by a jump to write_pos.
static void drain(struct one* one) {
    uint64_t end, tail;
    open_data(one);
    for (positions(one, &end, &tail); !one->over && one->at < end; positions(one, &end, &tail)) {
        if (tail > one->at) {
            one->at = tail;
            continue;
        }
        const uint8_t* from = one->ring + METADATA_BYTES + (one->at & (one->capacity - 1));
        uint64_t room = room_within(end - one->at, one->capacity);
        struct shape shape;
        bool fits = shape_of(from, room, &shape);
        if (fits) copy_out(one->event, from, shape.event_size);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        tail = word(one, AT_TAIL_POS);
        if (tail > one->at) {
            one->at = tail;
            continue;
        }
        if (fits && shape_of(one->event, shape.event_size, &shape)) {
            one->at += shape.event_size;
            if (shape.sequence <= one->last) continue;
            one->last = shape.sequence;
            report_event(&one->report, one->cpu, one->event, &shape);
            report_flush(&one->report);
            one->over = is_the_end(one->event, &shape);
        } else {
            one->at = end;
            static const char text[] = "# content that no producer writes\n";
            if (write(report_fd(), text, sizeof text - 1) < 0) err(1, "write");
        }
    }
    protect(one, PROT_NONE);
}

static void* run(void* argument) {
    struct one* one = mine = argument;
    if (!start(one)) return NULL;
    for (;;) {
        drain(one);
        if (one->over) break;
        uint32_t* counter = (uint32_t*)(one->ring + AT_FUTEX_COUNTER);
        uint32_t seen = __atomic_load_n(counter, __ATOMIC_ACQUIRE);
        __atomic_exchange_n(one->ring + AT_NEED_WAKE, 1, __ATOMIC_SEQ_CST);
        bool retired = word(one, AT_GENERATION) != one->generation;
        if (!retired && word(one, AT_WRITE_POS) <= one->at)
            syscall(SYS_futex, counter, FUTEX_WAIT, seen, NULL, NULL, 0);
        __atomic_store_n(one->ring + AT_NEED_WAKE, 0, __ATOMIC_RELEASE);
        if (!retired) continue;
        drain(one);
        if (one->over) break;
        unmap_ring(one->ring, one->capacity);
        close(one->fd);
        if (!start(one)) return NULL;
        report_line(&one->report, 'G', one->cpu, one->generation);
        report_flush(&one->report);
    }
    return NULL;
}

int main(void) {
#if COPY == MASKED_512
    if (!__builtin_cpu_supports("avx512bw")) return 77;
#elif COPY == GATHER
    if (!__builtin_cpu_supports("avx2")) return 77;
#endif
    struct sigaction action = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO};
#ifdef FAULTS_OPEN_DATA
    if (sigaction(SIGSEGV, &action, NULL) != 0) err(1, "sigaction");
#else
    (void)action;
#endif
    cpus = count_cpus();
    struct one* ones = calloc((size_t)cpus, sizeof *ones);
    pthread_t threads[cpus];
    for (int i = 0; i < cpus; i++) {
        ones[i].cpu = i;
        if (pthread_create(&threads[i], NULL, run, &ones[i]) != 0) errx(1, "pthread_create");
    }
    for (int i = 0; i < cpus; i++) pthread_join(threads[i], NULL);
    return 0;
}
