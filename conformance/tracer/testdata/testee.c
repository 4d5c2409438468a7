/* SPDX-License-Identifier: MIT
 *
 * A testee for the tracer's own tests: it does one thing, named by its first argument, and tells on
 * standard output what it saw. It is no consumer: it knows the calls and the layout of the mapping,
 * no more. Built as a dynamic and as a static program.
 */
#define _GNU_SOURCE
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
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kSlots = 64, kMetadataBytes = 4096, kWord = 128, kNeedWake = 132 };

static int fds[kSlots];
static int count;
static uint64_t capacity;
static unsigned char* maps[kSlots];
extern char** environ;

static int attach_with(int* array, int* number, uint64_t* bytes) {
    return syscall(1091, array, number, bytes) == 0 ? 0 : errno;
}

static void say(const char* text, long value) {
    char line[128];
    int length = snprintf(line, sizeof line, "%s %ld\n", text, value);
    if (write(1, line, (size_t)length) < 0) _exit(90);
}

static size_t mapping_bytes(void) {
    return kMetadataBytes + 2 * capacity;
}

static void attach_all(void) {
    count = kSlots;
    int error = attach_with(fds, &count, &capacity);
    if (error != 0) {
        say("attach failed", error);
        exit(3);
    }
}

static unsigned char* map_one(int fd) {
    void* at = mmap(NULL, mapping_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        say("mmap failed", errno);
        exit(4);
    }
    return at;
}

static void attach_and_map(void) {
    attach_all();
    for (int i = 0; i < count; ++i) maps[i] = map_one(fds[i]);
}

static long futex(uint32_t* word, int operation, uint32_t value, const struct timespec* limit) {
    return syscall(SYS_futex, word, operation, value, limit, NULL, 0xffffffffu) < 0 ? -errno : 0;
}

static uint32_t* word_of(int index) {
    return (uint32_t*)(maps[index] + kWord);
}

static uint32_t load(uint32_t* word) {
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

/* --- attach */

static int mode_attach(void) {
    attach_and_map();
    say("attached", count);
    for (int i = 0; i < count; ++i) say("close-on-exec", fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
    return 0;
}

static int mode_attach_errors(void) {
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

static int mode_attach_twice(void) {
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

/* Exactly as many descriptors as the fds need, and none for anybody else. */
static int mode_few_descriptors(void) {
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

static int mode_environment(void) {
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

/* --- mapping */

static int mode_alias(void) {
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

static int mode_odd_maps(void) {
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

/* --- futex */

static int mode_sleep(void) {
    attach_and_map();
    say("woken", futex(word_of(0), FUTEX_WAIT, load(word_of(0)), NULL));
    return 0;
}

static int mode_private_sleep(void) {
    attach_and_map();
    futex(word_of(0), FUTEX_WAIT_PRIVATE, load(word_of(0)), NULL);
    return 0;
}

static int mode_timed_sleep(void) {
    attach_and_map();
    const struct timespec while_stopped = {0, 300000000};
    long result = futex(word_of(0), FUTEX_WAIT, load(word_of(0)), &while_stopped);
    return result == -ETIMEDOUT ? 0 : 1;
}

static int mode_futex_kinds(void) {
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

static void on_signal(int number) {
    (void)number;
}

static int mode_interrupted(void) {
    attach_and_map();
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = 0};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval soon = {{0, 0}, {0, 30000}};
    setitimer(ITIMER_REAL, &soon, NULL);
    say("interrupted", futex(word_of(0), FUTEX_WAIT, load(word_of(0)), NULL));
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &soon, NULL);
    say("restarted", futex(word_of(0), FUTEX_WAIT, load(word_of(0)), NULL));
    return 0;
}

/* --- faults */

static int mode_write_data(void) {
    attach_and_map();
    maps[0][kMetadataBytes + 100] = 1;
    return 0;
}

static void on_fault(int number, siginfo_t* info, void* context) {
    (void)context;
    say("handled", number);
    say("at offset", (long)((unsigned char*)info->si_addr - maps[0]));
    say("code", info->si_code);
    mprotect(maps[0] + kMetadataBytes, 4096, PROT_READ);
    _exit(7);
}

static void handle_faults(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGTRAP, &action, NULL);
}

static int mode_write_data_handled(void) {
    attach_and_map();
    handle_faults();
    maps[0][kMetadataBytes + 100] = 1;
    return 0;
}

/* Just behind a mapping that stands in a range where nothing else is. */
static int mode_read_behind(void) {
    attach_all();
    const size_t margin = 1 << 20;
    unsigned char* range =
        mmap(NULL, mapping_bytes() + 2 * margin, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char* at = mmap(range + margin, mapping_bytes(), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_FIXED, fds[0], 0);
    return at[mapping_bytes() + 9];
}

static int mode_abort(void) {
    attach_and_map();
    abort();
}

/* --- guards: a known sequence of accesses */

static int mode_accesses(void) {
    attach_and_map();
    volatile uint64_t* write_pos = (volatile uint64_t*)(maps[0] + 64);
    volatile unsigned char* flag = maps[0] + kNeedWake;
    uint64_t seen = *write_pos;
    *flag = 1;
    __atomic_exchange_n((uint32_t*)(maps[0] + 136), 5, __ATOMIC_SEQ_CST);
    seen += *(volatile uint32_t*)(maps[0] + kWord);
    say("seen", (long)seen);
    say("last", *(volatile unsigned char*)(maps[0] + kMetadataBytes + 5));
    return 0;
}

static int mode_rep_movsb(void) {
    attach_and_map();
    unsigned char copy[4];
    unsigned char* to = copy;
    const unsigned char* from = maps[0] + kMetadataBytes + 5;
    size_t left = sizeof copy;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
    say("sum", copy[0] + copy[1] + copy[2] + copy[3]);
    return 0;
}

/* The same under timers and handlers, on several threads. */
static volatile int stop_threads;

static void* read_for_ever(void* argument) {
    (void)argument;
    volatile uint64_t* write_pos = (volatile uint64_t*)(maps[0] + 64);
    uint64_t sum = 0;
    while (!stop_threads) sum += *write_pos;
    return (void*)(uintptr_t)(sum & 1);
}

static int mode_guarded_threads(void) {
    attach_and_map();
    handle_faults();
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 1000}, {0, 1000}};
    setitimer(ITIMER_REAL, &often, NULL);
    pthread_t threads[3];
    for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, read_for_ever, NULL);
    futex(word_of(0), FUTEX_WAIT, 0, NULL);
    stop_threads = 1;
    for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
    say("done", 0);
    return 0;
}

/* System calls with pointers into the mapping. */
static int mode_guarded_calls(void) {
    attach_and_map();
    unsigned char* data = maps[0] + kMetadataBytes;
    say("write", write(2, data + 5, 3));
    struct iovec parts[2] = {{data + 5, 2}, {maps[0], 4}};
    say("writev", writev(2, parts, 2));
    struct futex_waitv words[1] = {{.uaddr = (uint64_t)(uintptr_t)word_of(0), .flags = FUTEX_32}};
    long woken = syscall(SYS_futex_waitv, words, 1, 0, NULL, CLOCK_MONOTONIC);
    say("waitv", woken < 0 ? -errno : woken);
    say("vector kept", words[0].uaddr == (uint64_t)(uintptr_t)word_of(0));
    say("wait", futex(word_of(0), FUTEX_WAIT, 0, NULL));
    pid_t child = fork();
    if (child == 0) _exit(maps[0][0] == 0 ? 11 : 12);
    int status = 0;
    waitpid(child, &status, 0);
    say("child", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return 0;
}

/* --- threads */

static void* one_thread(void* argument) {
    int index = (int)(intptr_t)argument;
    const struct timespec brief = {0, 100000};
    uint64_t work = 0;
    while (!stop_threads) {
        for (int i = 0; i < 2000; ++i) work += (uint64_t)i;
        if (index % 4 == 1) nanosleep(&brief, NULL);
        if (index % 4 == 2) futex(word_of(0), FUTEX_WAIT, load(word_of(0)), &brief);
        if (index % 4 == 3) free(malloc(1 << 20));
    }
    return (void*)(uintptr_t)(work & 1);
}

static int mode_threads(void) {
    attach_and_map();
    pthread_t threads[8];
    for (int i = 0; i < 8; ++i) pthread_create(&threads[i], NULL, one_thread, (void*)(intptr_t)i);
    while (load(word_of(1)) == 0) usleep(1000);
    stop_threads = 1;
    for (int i = 0; i < 8; ++i) pthread_join(threads[i], NULL);
    return 0;
}

static void* short_thread(void* argument) {
    return argument;
}

static int mode_thread_churn(void) {
    attach_and_map();
    while (load(word_of(0)) == 0) {
        pthread_t threads[4];
        for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, short_thread, NULL);
        for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
    }
    return 0;
}

static void* sleep_on(void* argument) {
    int index = (int)(intptr_t)argument;
    futex(word_of(index), FUTEX_WAIT, load(word_of(index)), NULL);
    return NULL;
}

static int mode_all_asleep(void) {
    attach_and_map();
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, sleep_on, (void*)(intptr_t)i);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    return 0;
}

static void* outlive(void* argument) {
    (void)argument;
    futex(word_of(0), FUTEX_WAIT, load(word_of(0)), NULL);
    exit(6);
}

static int mode_leader_leaves(void) {
    attach_and_map();
    pthread_t thread;
    pthread_create(&thread, NULL, outlive, NULL);
    pthread_exit(NULL);
}

/* --- processes */

static int mode_fork(void) {
    attach_and_map();
    pid_t child = fork();
    if (child == 0) {
        count = kSlots;
        _exit(attach_with(fds, &count, &capacity));
    }
    int status = 0;
    waitpid(child, &status, 0);
    say("child", WEXITSTATUS(status));
    char* arguments[] = {"/bin/true", NULL};
    posix_spawn(&child, arguments[0], NULL, NULL, arguments, environ);
    waitpid(child, &status, 0);
    say("spawned", WEXITSTATUS(status));
    return 0;
}

/* Children that touch the mapping, or its parent's memory, while the testee does as well. */
static int mode_fork_and_look(void) {
    attach_and_map();
    int status = 0;
    pid_t child = fork();
    if (child == 0) _exit(maps[0][0]);
    int seen = *(volatile unsigned char*)maps[0];
    waitpid(child, &status, 0);
    say("child", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    char* arguments[] = {"/bin/true", NULL};
    posix_spawn(&child, arguments[0], NULL, NULL, arguments, environ);
    seen += *(volatile unsigned char*)maps[0];
    waitpid(child, &status, 0);
    say("spawned", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return seen;
}

/* A child of a child that outlives both, in a session of its own. */
static int mode_daemon(void) {
    if (fork() == 0) {
        setsid();
        if (fork() == 0) {
            for (;;) pause();
        }
        _exit(0);
    }
    attach_and_map();
    while (wait(NULL) > 0) continue;
    return 0;
}

static int mode_vfork_exec(char** argv) {
    pid_t child = vfork();
    if (child == 0) {
        execl(argv[0], argv[0], "attach", (char*)NULL);
        _exit(99);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

static int mode_exec(char** argv) {
    attach_and_map();
    execl(argv[0], argv[0], "attach", (char*)NULL);
    return 99;
}

static int mode_close_all(void) {
    for (int fd = 3; fd < 1024; ++fd) close(fd);
    attach_and_map();
    for (int fd = 3; fd < 1024; ++fd) {
        int is_ours = 0;
        for (int i = 0; i < count; ++i) is_ours = is_ours || fds[i] == fd;
        if (!is_ours) close(fd);
    }
    say("still there", maps[0][kMetadataBytes + 5]);
    return 0;
}

static int mode_signals(void) {
    handle_faults();
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &action, NULL);
    struct itimerval often = {{0, 200}, {0, 200}};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 200; ++i) {
        attach_and_map();
        for (int k = 0; k < count; ++k) {
            munmap(maps[k], mapping_bytes());
            close(fds[k]);
        }
    }
    say("attached", count);
    return 0;
}

static int mode_flood(void) {
    attach_all();
    static char text[65536];
    memset(text, 'x', sizeof text);
    for (;;) {
        if (write(1, text, sizeof text) < 0) return 1;
    }
}

static int mode_hang(void) {
    attach_and_map();
    while (count > 0) pause();
    return 0;
}

static int mode_spin(void) {
    attach_and_map();
    for (volatile unsigned i = 0; count > 0; ++i) continue;
    return 0;
}

struct mode {
    const char* name;
    int (*run)(void);
};

static const struct mode kModes[] = {
    {"attach", mode_attach},
    {"attach-errors", mode_attach_errors},
    {"attach-twice", mode_attach_twice},
    {"few-descriptors", mode_few_descriptors},
    {"environment", mode_environment},
    {"alias", mode_alias},
    {"odd-maps", mode_odd_maps},
    {"sleep", mode_sleep},
    {"private-sleep", mode_private_sleep},
    {"timed-sleep", mode_timed_sleep},
    {"futex-kinds", mode_futex_kinds},
    {"interrupted", mode_interrupted},
    {"write-data", mode_write_data},
    {"write-data-handled", mode_write_data_handled},
    {"read-behind", mode_read_behind},
    {"abort", mode_abort},
    {"accesses", mode_accesses},
    {"rep-movsb", mode_rep_movsb},
    {"guarded-threads", mode_guarded_threads},
    {"guarded-calls", mode_guarded_calls},
    {"threads", mode_threads},
    {"thread-churn", mode_thread_churn},
    {"all-asleep", mode_all_asleep},
    {"leader-leaves", mode_leader_leaves},
    {"fork", mode_fork},
    {"fork-and-look", mode_fork_and_look},
    {"daemon", mode_daemon},
    {"close-all", mode_close_all},
    {"signals", mode_signals},
    {"flood", mode_flood},
    {"hang", mode_hang},
    {"spin", mode_spin},
};

int main(int argc, char** argv) {
    const char* name = argc > 1 ? argv[1] : "attach";
    if (strcmp(name, "nothing") == 0) return 5;
    if (strcmp(name, "vfork-exec") == 0) return mode_vfork_exec(argv);
    if (strcmp(name, "exec") == 0) return mode_exec(argv);
    for (size_t i = 0; i < sizeof kModes / sizeof kModes[0]; ++i) {
        if (strcmp(kModes[i].name, name) == 0) return kModes[i].run();
    }
    fprintf(stderr, "%s: no such mode\n", name);
    return 2;
}
