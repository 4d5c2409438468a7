/* SPDX-License-Identifier: MIT
 *
 * A testee for the tracer's own tests. Its first argument names the one action that it executes. It
 * prints its observations on standard output. It is no consumer: it knows only the calls and the
 * layout of the mapping. Built as a dynamic and as a static program.
 */
#define _GNU_SOURCE
#include "testee.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int fds[kSlots];
int count;
uint64_t capacity;
unsigned char* maps[kSlots];
int map_flags;

int attach_with(int* array, int* number, uint64_t* bytes) {
    return syscall(1091, array, number, bytes) == 0 ? 0 : errno;
}

void say(const char* text, long value) {
    char line[128];
    int length = snprintf(line, sizeof line, "%s %ld\n", text, value);
    if (write(1, line, (size_t)length) < 0) _exit(90);
}

size_t mapping_bytes(void) {
    return kMetadataBytes + 2 * capacity;
}

void attach_all(void) {
    count = kSlots;
    int error = attach_with(fds, &count, &capacity);
    if (error != 0) {
        say("attach failed", error);
        exit(3);
    }
}

static unsigned char* map_one(int fd) {
    void* at = mmap(NULL, mapping_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | map_flags, fd, 0);
    if (at == MAP_FAILED) {
        say("mmap failed", errno);
        exit(4);
    }
    return at;
}

void attach_and_map(void) {
    attach_all();
    for (int i = 0; i < count; ++i) maps[i] = map_one(fds[i]);
}

long futex(uint32_t* word, int operation, uint32_t value, const struct timespec* limit) {
    return syscall(SYS_futex, word, operation, value, limit, NULL, 0xffffffffu) < 0 ? -errno : 0;
}

uint32_t* word_of(int index) {
    return (uint32_t*)(maps[index] + kWord);
}

uint32_t load(uint32_t* word) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* --- attach */

static int mode_attach(char** argv) {
    (void)argv;
    attach_and_map();
    say("attached", count);
    for (int i = 0; i < count; ++i) say("close-on-exec", fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
    return 0;
}

static int mode_attach_errors(char** argv) {
    (void)argv;
    say("question", attach_with(NULL, (count = 0, &count), &capacity));
    say("needed", count);
    count = 1;
    fds[0] = -7;
    say("too few", attach_with(fds, &count, &capacity));
    say("needed", count);
    say("untouched", fds[0]);
    count = kSlots;
    say("bad array", attach_with((int*)8, &count, &capacity));
    say("bad count", attach_with(fds, (int*)8, &capacity));
    say("bad capacity", attach_with(fds, &count, (uint64_t*)8));
    void* read_only = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    say("read-only array", attach_with(read_only, &count, &capacity));
    say("right", attach_with(fds, &count, &capacity));
    return 0;
}

/* The array of descriptors is in memory that is not mapped any more. */
static int mode_attach_into_removed(char** argv) {
    (void)argv;
    int* removed = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    attach_all();
    munmap(removed, 4096);
    count = kSlots;
    say("removed array", attach_with(removed, &count, &capacity));
    return 0;
}

/* Removes the memory from which the tracer makes its calls: the mapping of this length. */
static int mode_remove_too_much(char** argv) {
    (void)argv;
    const unsigned long pages = 257;
    attach_all();
    FILE* maps_file = fopen("/proc/self/maps", "r");
    char line[512];
    unsigned long from = 0;
    unsigned long to = 0;
    while (fgets(line, sizeof line, maps_file) != NULL) {
        if (sscanf(line, "%lx-%lx", &from, &to) == 2 && to - from == pages * 4096) break;
    }
    fclose(maps_file);
    munmap((void*)from, to - from);
    count = kSlots;
    say("attach", attach_with(fds, &count, &capacity));
    return 0;
}

static int mode_attach_twice(char** argv) {
    (void)argv;
    attach_all();
    int first = fds[0];
    attach_all();
    say("fresh fd", first != fds[0]);
    return 0;
}

static int lowest_free(void) {
    int fd = dup(0);
    close(fd);
    return fd;
}

/* Exactly as many descriptors as the fds need, and no more. */
static int mode_few_descriptors(char** argv) {
    (void)argv;
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = (rlim_t)lowest_free() + 1;
    setrlimit(RLIMIT_NOFILE, &limit);
    count = kSlots;
    int before = lowest_free();
    say("one too few", attach_with(fds, &count, &capacity));
    say("none left open", before == lowest_free());
    limit.rlim_cur += 1;
    setrlimit(RLIMIT_NOFILE, &limit);
    attach_and_map();
    say("mapped", maps[1][0]);
    getrlimit(RLIMIT_NOFILE, &limit);
    say("limit kept", (int)limit.rlim_cur == before + 2);
    return 0;
}

static int mode_environment(char** argv) {
    (void)argv;
    int report = atoi(getenv("KMES_REPORT_FD"));
    say("report flags", fcntl(report, F_GETFL) & O_APPEND);
    say("report close-on-exec", fcntl(report, F_GETFD) & FD_CLOEXEC);
    say("lowest free", lowest_free());
    say("input empty", read(0, &count, 1));
    sigset_t set;
    sigprocmask(SIG_SETMASK, NULL, &set);
    say("SIGCHLD blocked", sigismember(&set, SIGCHLD));
    say("leads session", getsid(0) == getpid());
    say("scratch variable", getenv("TRACER_TEST") != NULL);
    if (write(report, "E 0 1\n", 6) != 6) return 1;
    fprintf(stderr, "to standard error\n");
    attach_all();
    return 0;
}

static int mode_report(char** argv) {
    (void)argv;
    int report = atoi(getenv("KMES_REPORT_FD"));
    static char type[1500];
    memset(type, 'b', sizeof type);
    struct iovec parts[] = {{"# hello\nE 0 ", 12}, {NULL, 0}, {"1\n", 2}, {"E 0 ", 4}};
    struct iovec many[] = {{type, sizeof type}, {"\n", 1}};
    attach_all();
    if (write(report, "E 0 0\n", 6) != 6 || write(report, "", 0) != 0) return 1;
    if (writev(report, parts, 4) != 18 || writev(report, many, 2) != 1501) return 1;
    return write(1, "no report\n", 10) == 10 ? 0 : 1;
}

/* --- mapping */

static int mode_alias(char** argv) {
    (void)argv;
    attach_and_map();
    unsigned char* data = maps[0] + kMetadataBytes;
    say("first copy", data[5]);
    say("second copy", data[5 + capacity]);
    say("last byte", data[2 * capacity - 1]);
    maps[0][kNeedWake] = 1;
    say("make writable",
        mprotect(maps[0], mapping_bytes(), PROT_READ | PROT_WRITE) != 0 ? errno : 0);
    say("make data writable", mprotect(data, 4096, PROT_READ | PROT_WRITE) != 0 ? errno : 0);
    futex(word_of(0), FUTEX_WAIT, load(word_of(0)), NULL);
    say("after", data[5] + data[5 + capacity]);
    return 0;
}

static int mode_odd_maps(char** argv) {
    (void)argv;
    attach_all();
    size_t length = mapping_bytes();
    const int rw = PROT_READ | PROT_WRITE;
    unsigned char* page = mmap(NULL, 4096, rw, MAP_SHARED, fds[0], 0);
    say("page alone", page[0]);
    unsigned char* once = mmap(NULL, 4096 + capacity, PROT_READ, MAP_SHARED, fds[0], 0);
    say("one copy", once[4096 + 5]);
    unsigned char* secret = mmap(NULL, length, rw, MAP_PRIVATE, fds[0], 0);
    say("private", secret[4096 + 5]);
    unsigned char* data = mmap(NULL, capacity, PROT_READ, MAP_SHARED, fds[0], 4096);
    say("data alone", data[5]);
    unsigned char* second =
        mmap(NULL, capacity, PROT_READ, MAP_SHARED, fds[0], (off_t)(4096 + capacity));
    say("second alone", second[5]);
    void* place = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char* fixed =
        mmap(place, length, rw, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fds[0], 0);
    say("fixed", fixed == place && fixed[4096 + capacity + 5] == 42);
    say("bad offset", syscall(SYS_mmap, NULL, length, rw, MAP_SHARED, fds[0], 1) == -1 ? errno : 0);
    int copy = dup(fds[1]);
    close(fds[1]);
    unsigned char* dupped = mmap(NULL, length, rw, MAP_SHARED, copy, 0);
    say("by dup", dupped[4096 + 5]);
    munmap(fixed, length);
    futex((uint32_t*)(dupped + kWord), FUTEX_WAIT, 0, NULL);
    return 0;
}

/* Unmaps the second copy of the data, and uses the place for something else. */
static int mode_half_map(char** argv) {
    (void)argv;
    attach_and_map();
    void* half = maps[0] + kMetadataBytes + capacity;
    if (munmap(half, capacity) != 0) return 10;
    const int rw = PROT_READ | PROT_WRITE;
    void* own = mmap(half, capacity, rw, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (mremap(own, capacity, 2 * capacity, MREMAP_MAYMOVE) == MAP_FAILED) return 11;
    futex(word_of(0), FUTEX_WAIT, 0, NULL);
    const volatile unsigned char* data = maps[0] + kMetadataBytes;
    say("first", data[5]);
    say("last", data[capacity - 1]);
    return 0;
}

/* --- futex */

static int mode_sleep(char** argv) {
    (void)argv;
    attach_and_map();
    say("woken", futex(word_of(0), FUTEX_WAIT, load(word_of(0)), NULL));
    return 0;
}

static int mode_private_sleep(char** argv) {
    (void)argv;
    attach_and_map();
    futex(word_of(0), FUTEX_WAIT_PRIVATE, load(word_of(0)), NULL);
    return 0;
}

// The third argument is the timeout in milliseconds.
static int mode_timed_sleep(char** argv) {
    attach_and_map();
    const long milliseconds = argv[2] == NULL ? 0 : atol(argv[2]);
    const struct timespec timeout = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    long result = futex(word_of(0), FUTEX_WAIT, load(word_of(0)), &timeout);
    return result == -ETIMEDOUT ? 0 : 1;
}

static int mode_futex_kinds(char** argv) {
    (void)argv;
    attach_and_map();
    uint32_t value = load(word_of(0));
    const struct timespec brief = {0, 3000000};
    const struct timespec past = {1, 5};
    say("wrong value", futex(word_of(0), FUTEX_WAIT, value + 1, NULL));
    say("timed", futex(word_of(0), FUTEX_WAIT, value, &brief));
    say("absolute", futex(word_of(0), FUTEX_WAIT_BITSET, value, &past));
    say("private", futex(word_of(0), FUTEX_WAIT_PRIVATE, value, &brief));
    say("wake", futex(word_of(0), FUTEX_WAKE, 1, NULL));
    struct futex_waitv words[3] = {{0}};
    uint32_t own = 7;
    words[0] = (struct futex_waitv){
        .val = 7, .uaddr = (uint64_t)(uintptr_t)&own, .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG};
    words[1] = (struct futex_waitv){
        .val = value, .uaddr = (uint64_t)(uintptr_t)word_of(0), .flags = FUTEX_32};
    words[2] = (struct futex_waitv){
        .val = value, .uaddr = (uint64_t)(uintptr_t)word_of(1), .flags = FUTEX_32};
    long woken = syscall(SYS_futex_waitv, words, 3, 0, NULL, CLOCK_MONOTONIC);
    say("waitv", woken < 0 ? -errno : woken);
    return 0;
}

void on_signal(int number) {
    (void)number;
}

// The test sends SIGALRM in each wait.
static int mode_interrupted(char** argv) {
    (void)argv;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = 0};
    sigaction(SIGALRM, &action, NULL);
    attach_and_map();
    say("interrupted", futex(word_of(0), FUTEX_WAIT, load(word_of(0)), NULL));
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    say("restarted", futex(word_of(0), FUTEX_WAIT, load(word_of(0)), NULL));
    return 0;
}

static void* sleep_until_cancelled(void* unused) {
    (void)unused;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    futex(word_of(0), FUTEX_WAIT, load(word_of(0)), NULL);
    return NULL;
}

/* The other thread sleeps on the first word; this one continues when the second is woken. */
static pthread_t start_sleeper(void) {
    attach_and_map();
    pthread_t thread;
    if (pthread_create(&thread, NULL, sleep_until_cancelled, NULL) != 0) exit(6);
    futex(word_of(1), FUTEX_WAIT, load(word_of(1)), NULL);
    return thread;
}

static int mode_cancelled(char** argv) {
    (void)argv;
    pthread_t thread = start_sleeper();
    pthread_cancel(thread);
    pthread_join(thread, NULL);
    return 5;
}

static int mode_executed(char** argv) {
    start_sleeper();
    char* arguments[] = {argv[0], "nothing", NULL};
    execv("/proc/self/exe", arguments);
    return 7;
}

static const struct mode kModes[] = {
    {"attach", mode_attach},
    {"attach-errors", mode_attach_errors},
    {"attach-into-removed", mode_attach_into_removed},
    {"remove-too-much", mode_remove_too_much},
    {"attach-twice", mode_attach_twice},
    {"few-descriptors", mode_few_descriptors},
    {"environment", mode_environment},
    {"report", mode_report},
    {"alias", mode_alias},
    {"odd-maps", mode_odd_maps},
    {"half-map", mode_half_map},
    {"sleep", mode_sleep},
    {"private-sleep", mode_private_sleep},
    {"timed-sleep", mode_timed_sleep},
    {"futex-kinds", mode_futex_kinds},
    {"interrupted", mode_interrupted},
    {"cancelled", mode_cancelled},
    {"executed", mode_executed},
    {NULL, NULL},
};

int main(int argc, char** argv) {
    const char* name = argc > 1 ? argv[1] : "attach";
    if (strcmp(name, "nothing") == 0) return 5;
    static const struct mode* const kLists[] = {
        kModes,         kOtherModes,      kProcessModes,  kFormModes,     kCopyModes,
        kRegisterModes, kSignalModes,     kMaskModes,     kOneCpuModes,   kStuckModes,
        kPatchModes,    kProtectionModes, kArgumentModes, kUserfaultModes};
    for (size_t i = 0; i < sizeof kLists / sizeof *kLists; ++i) {
        for (const struct mode* mode = kLists[i]; mode->name != NULL; ++mode) {
            if (strcmp(mode->name, name) == 0) return mode->run(argv);
        }
    }
    fprintf(stderr, "%s: no such mode\n", name);
    return 2;
}
