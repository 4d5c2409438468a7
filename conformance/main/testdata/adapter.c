// SPDX-License-Identifier: MIT
//
// A small consumer for the tests of `smoke`. Without an argument it is correct for their stream; an
// argument names a mistake. Copy from the examples in conformance/testees, and not from this file.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kAttach = 1091, kCpus = 64, kReportBytes = 65536, kMostTypeBytes = 256 };

static const char* mistake = "";
static int report_fd = 1, cpu_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char kept[kReportBytes];  // the report of "buffered"

static bool is(const char* name) {
    return strcmp(mistake, name) == 0;
}

// One line of the report; `line` ends with a newline.
static void put(const char* line) {
    const size_t size = strlen(line);
    if (is("silent") || is("silent-one-fd-for-all")) return;
    pthread_mutex_lock(&lock);
    if (is("buffered")) {
        strcat(kept, line);
    } else if (is("pieces") && size > 8) {
        if (write(report_fd, line, 8) < 0 || write(report_fd, line + 8, size - 8) < 0) _exit(90);
    } else if (write(is("stdout") ? 1 : report_fd, line, size) < 0) {
        _exit(90);
    }
    pthread_mutex_unlock(&lock);
}

static uint64_t load(const uint8_t* page, size_t offset) {
    return __atomic_load_n((const uint64_t*)(const void*)(page + offset), __ATOMIC_ACQUIRE);
}

static uint8_t* attach_and_map(int cpu, uint64_t* capacity) {
    int fds[kCpus], count = kCpus;
    if (syscall(kAttach, fds, &count, capacity) != 0) _exit(91);
    const size_t copies = is("short-mapping") ? 1 : 2;
    const int flags = is("private-mapping") ? MAP_PRIVATE : MAP_SHARED;
    const int fd = fds[is("one-fd-for-all") || is("silent-one-fd-for-all") ? 0 : cpu];
    uint8_t* page = mmap(NULL, 4096 + copies * *capacity, PROT_READ | PROT_WRITE, flags, fd, 0);
    for (int i = 0; i < count; i++) close(fds[i]);
    if (page == MAP_FAILED) _exit(92);
    return page;
}

// Plays an endless action before or after the attach, such as "flood-before".
static void stress(const char* when) {
    const char* dash = strrchr(mistake, '-');
    if (dash == NULL || strcmp(dash + 1, when) != 0) return;
    const size_t length = (size_t)(dash - mistake);
    const bool floods = strncmp(mistake, "flood", length) == 0;
    const bool floods_line = strncmp(mistake, "endless", length) == 0;
    const bool comments = strncmp(mistake, "comments", length) == 0;
    const bool spins = strncmp(mistake, "spin", length) == 0;
    const bool forks = strncmp(mistake, "forks", length) == 0;
    const bool sleeps = strncmp(mistake, "sleep", length) == 0;
    if (strncmp(mistake, "stubborn", length) == 0) {
        signal(SIGTERM, SIG_IGN);
        if (fork() == 0) setsid();  // outlives its parent, if nobody kills it
        for (;;) pause();
    }
    while (floods) {
        if (write(report_fd, "E 0 1 1 0 74 0 cbf29ce484222325\n", 32) < 0) _exit(90);
    }
    while (floods_line) {
        if (write(report_fd, "E 0 1 1 0 74 0 ", 15) < 0) _exit(90);
    }
    while (comments) {
        if (write(report_fd, "# alive\n", 8) < 0) _exit(90);
        usleep(20000);
    }
    while (spins) __asm__ volatile("");
    while (sleeps) usleep(1000);
    while (forks) {
        if (fork() == 0)
            for (;;) pause();
    }
}

struct consumer {
    int cpu;
    pthread_t thread;
    uint8_t* page;
    uint64_t capacity, generation, read_pos, last;
};

// Returns false after the end event.
static bool deliver(struct consumer* c, const uint8_t* event) {
    static const char kEnd[] = "kmes.conformance.end";
    uint32_t size, header;
    uint64_t timestamp, sequence, digest = 0xcbf29ce484222325;
    uint16_t type_len;
    char line[1024];
    memcpy(&size, event, 4);
    memcpy(&header, event + 4, 4);
    memcpy(&timestamp, event + 8, 8);
    memcpy(&sequence, event + 16, 8);
    memcpy(&type_len, event + 27, 2);
    if (type_len > kMostTypeBytes) _exit(96);
    if (sequence <= c->last) return true;
    if (c->last != 0 && sequence != c->last + 1) {
        snprintf(line, sizeof line, "L %d %lu\n", c->cpu, sequence - c->last - 1);
        put(line);
    }
    c->last = sequence;
    int used =
        snprintf(line, sizeof line, "E %d %lu %lu %u ", c->cpu, sequence, timestamp, event[26]);
    for (uint16_t i = 0; i < type_len; i++)
        used += snprintf(line + used, sizeof line - (size_t)used, "%02x", event[29 + i]);
    for (uint32_t i = header; i < size; i++) {
        if (is("fnv1"))
            digest = (digest * 0x100000001b3) ^ event[i];
        else
            digest = (digest ^ event[i]) * 0x100000001b3;
    }
    snprintf(line + used, sizeof line - (size_t)used, " %u %016lx\n", size - header, digest);
    put(line);
    return type_len != sizeof kEnd - 1 || memcmp(event + 29, kEnd, type_len) != 0;
}

// Returns false if this CPU has ended.
static bool drain(struct consumer* c) {
    while (c->read_pos < load(c->page, 64)) {
        const uint8_t* event = c->page + 4096 + (c->read_pos & (c->capacity - 1));
        uint32_t size;
        memcpy(&size, event, 4);
        const bool more = deliver(c, event);
        c->read_pos += size;
        if (!more && !is("after-the-end")) return false;
    }
    return true;
}

static void take(struct consumer* c) {
    char line[64];
    c->page = attach_and_map(c->cpu, &c->capacity);
    c->generation = load(c->page, 32);
    c->read_pos = load(c->page, is("begins-at-write-pos") ? 64 : 72);
    snprintf(line, sizeof line, "G %d %lu\n", c->cpu, c->generation);
    put(line);
}

static void* consume(void* argument) {
    struct consumer* c = argument;
    take(c);
    if (memcmp(c->page, "KMESRING", 8) != 0) {
        char line[64];
        snprintf(line, sizeof line, "R %d bad magic\n", c->cpu);
        put(line);
        return NULL;
    }
    if (is("crash")) raise(SIGSEGV);
    if (c->cpu == 0) stress("after");
    for (;;) {
        const bool retired = load(c->page, 32) != c->generation;
        if (!drain(c)) return NULL;
        if (retired) {
            take(c);
            continue;
        }
        uint32_t* counter = (uint32_t*)(void*)(c->page + 128);
        const uint32_t seen = __atomic_load_n(counter, __ATOMIC_ACQUIRE);
        __atomic_store_n(c->page + 132, 1, __ATOMIC_SEQ_CST);
        if (load(c->page, 64) <= c->read_pos && load(c->page, 32) == c->generation)
            syscall(SYS_futex, counter, is("private-futex") ? FUTEX_WAIT_PRIVATE : FUTEX_WAIT, seen,
                    NULL, NULL, 0);
        __atomic_store_n(c->page + 132, 0, __ATOMIC_RELAXED);
    }
}

int main(int argument_count, char** arguments) {
    static struct consumer consumers[kCpus];
    uint64_t capacity;
    if (argument_count > 1) mistake = arguments[1];
    // The message of LeakSanitizer.
    if (is("sanitizer")) {
        fputs(
            "LeakSanitizer has encountered a fatal error.\nHINT: LeakSanitizer does not work "
            "under ptrace (strace, gdb, etc)\n",
            stderr);
        return 1;
    }
    if (getenv("KMES_REPORT_FD") != NULL) report_fd = atoi(getenv("KMES_REPORT_FD"));
    stress("before");
    if (is("no-attach")) return 0;
    // As in the published forms of the layout: how many slots are there?
    if (is("attach-of-one-cpu")) return syscall(kAttach, 0xffffffffu, &(uint64_t){0}) != 0;
    if (is("waits-first")) pause();
    if (syscall(kAttach, NULL, &cpu_count, &capacity) == 0 || errno != ERANGE) return 93;
    if (is("not-with-one-cpu") && cpu_count == 1) return 0;
    if (is("seccomp")) raise(SIGSYS);
    for (int cpu = 0; cpu < cpu_count; cpu++) {
        consumers[cpu].cpu = cpu;
        if (pthread_create(&consumers[cpu].thread, NULL, consume, &consumers[cpu]) != 0) return 94;
    }
    for (int cpu = 0; cpu < cpu_count; cpu++) pthread_join(consumers[cpu].thread, NULL);
    if (is("buffered") && write(report_fd, kept, strlen(kept)) < 0) return 95;
    if (is("no-exit")) pause();
    return is("status") ? 3 : 0;
}
