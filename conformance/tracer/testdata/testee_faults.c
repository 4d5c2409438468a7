/* SPDX-License-Identifier: MIT
 *
 * Further modes of the tracer's test testee: faults, guarded accesses, threads.
 */
#define _GNU_SOURCE
#include "testee.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- faults */

static int mode_write_data(char** argv) {
    (void)argv;
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

static int mode_write_data_handled(char** argv) {
    (void)argv;
    attach_and_map();
    handle_faults();
    maps[0][kMetadataBytes + 100] = 1;
    return 0;
}

static pthread_barrier_t all_are_there;

static void* write_with_others(void* at) {
    pthread_barrier_wait(&all_are_there);
    *(volatile unsigned char*)at = 1;
    return NULL;
}

/* All threads store to the data at the same time. */
static int mode_write_data_at_once(char** argv) {
    (void)argv;
    enum { kThreads = 12 };
    pthread_t thread;
    attach_and_map();
    pthread_barrier_init(&all_are_there, NULL, kThreads);
    for (int i = 0; i < kThreads; i++)
        pthread_create(&thread, NULL, write_with_others, maps[0] + kMetadataBytes + i);
    pthread_join(thread, NULL);
    return 0;
}

/* Reads just after a mapping that has no neighbours. */
static int mode_read_past(char** argv) {
    (void)argv;
    attach_all();
    const size_t margin = 1 << 20;
    unsigned char* range =
        mmap(NULL, mapping_bytes() + 2 * margin, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char* at = mmap(range + margin, mapping_bytes(), PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_FIXED, fds[0], 0);
    return at[mapping_bytes() + 9];
}

static int mode_read_after_unmap(char** argv) {
    (void)argv;
    attach_all();
    unsigned char* at = mmap(NULL, mapping_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
    munmap(at, mapping_bytes());
    return at[4096 + 9];
}

/* The C library maps a large block alone, and removes it in free(). */
static int mode_read_after_free(char** argv) {
    (void)argv;
    attach_all();
    void* block = malloc(1 << 20);
    const uintptr_t address = (uintptr_t)block;
    free(block);
    return *(volatile unsigned char*)(address + 4096 + 9);
}

static int mode_abort(char** argv) {
    (void)argv;
    attach_and_map();
    abort();
}

static int mode_jump_to_zero(char** argv) {
    (void)argv;
    attach_and_map();
    int (*volatile nowhere)(void) = NULL;
    return nowhere();
}

/* --- guards: a known sequence of accesses */

static int mode_accesses(char** argv) {
    (void)argv;
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

/* The flags between two accesses. */
static int mode_flags(char** argv) {
    (void)argv;
    attach_and_map();
    volatile uint64_t* write_pos = (volatile uint64_t*)(maps[0] + 64);
    uint64_t seen = *write_pos;
    uint64_t flags = 0;
    __asm__ volatile("pushfq; popq %0; pushq %0; popfq" : "=r"(flags) : : "memory", "cc");
    __asm__ volatile("pushfq; popfq" : : : "memory", "cc");
    seen += *write_pos;
    say("seen", (long)seen);
    say("trap flag", (long)(flags >> 8 & 1));
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

static int mode_guarded_threads(char** argv) {
    (void)argv;
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
static int mode_guarded_calls(char** argv) {
    (void)argv;
    attach_and_map();
    unsigned char* data = maps[0] + kMetadataBytes;
    say("write", write(2, data + 5, 3));
    struct iovec parts[2] = {{data + 5, 2}, {maps[0], 4}};
    say("writev", writev(2, parts, 2));
    int ends[2];
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    say("sendmsg", sendmsg(ends[0], &message, 0));
    say("message kept", message.msg_iov == parts && parts[0].iov_base == data + 5);
    char copy[4] = "";
    struct iovec to = {copy, 3};
    struct iovec from = {data + 5, 3};
    say("readv of itself", process_vm_readv(getpid(), &to, 1, &from, 1, 0));
    write(2, copy, 3);
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

static int mode_threads(char** argv) {
    (void)argv;
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

static int mode_thread_churn(char** argv) {
    (void)argv;
    attach_and_map();
    while (load(word_of(0)) == 0) {
        pthread_t threads[12];
        for (int i = 0; i < 12; ++i) pthread_create(&threads[i], NULL, short_thread, NULL);
        for (int i = 0; i < 12; ++i) pthread_join(threads[i], NULL);
    }
    return 0;
}

static void* sleep_on(void* argument) {
    int index = (int)(intptr_t)argument;
    futex(word_of(index), FUTEX_WAIT, load(word_of(index)), NULL);
    return NULL;
}

static int mode_all_asleep(char** argv) {
    (void)argv;
    attach_and_map();
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) pthread_create(&threads[i], NULL, sleep_on, (void*)(intptr_t)i);
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    return 0;
}

/* Many threads that stop all the time. Only the youngest counts its turns, and ends the process. */
enum { kCrowd = 40 };
static pthread_barrier_t crowd_is_here;

static void wait_briefly(void) {
    const struct timespec brief = {0, 1};
    futex(word_of(0), FUTEX_WAIT, load(word_of(0)), &brief);
}

static void* crowd(void* argument) {
    const int is_youngest = (intptr_t)argument == kCrowd - 1;
    pthread_barrier_wait(&crowd_is_here);
    for (int i = 0; !is_youngest || i < 50; ++i) wait_briefly();
    exit(7);
}

static int mode_crowd(char** argv) {
    (void)argv;
    attach_and_map();
    pthread_t thread;
    pthread_barrier_init(&crowd_is_here, NULL, kCrowd);
    for (intptr_t i = 0; i < kCrowd; ++i) pthread_create(&thread, NULL, crowd, (void*)i);
    pthread_join(thread, NULL);
    return 0;
}

/* The other end of this pipe with a name is never opened. */
static int open_half_a_pipe(void) {
    const char* folder = getenv("TEST_TMPDIR");
    char path[512];
    snprintf(path, sizeof path, "%s/half-a-pipe.%d", folder == NULL ? "/tmp" : folder, getpid());
    return mkfifo(path, 0600) == 0 ? open(path, O_WRONLY) : -1;
}

static int epoll_on_a_socket(void) {
    int ends[2];
    struct epoll_event event = {.events = EPOLLIN};
    const int set = epoll_create1(0);
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) return -1;
    epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event);
    return epoll_wait(set, &event, 1, -1);
}

/* Blocked without a timeout, except by a file: a timer becomes ready at some time, an eventfd
 * never. */
static int mode_blocked_on(char** argv) {
    attach_and_map();
    if (strcmp(argv[2], "open") == 0) return open_half_a_pipe();
    if (strcmp(argv[2], "socket") == 0) return epoll_on_a_socket();
    const int is_timer = strcmp(argv[2], "eventfd") != 0;
    const struct itimerspec late = {{0, 0}, {1000, 0}};
    const int fd = is_timer ? timerfd_create(CLOCK_MONOTONIC, 0) : eventfd(0, 0);
    if (is_timer) timerfd_settime(fd, 0, &late, NULL);
    struct pollfd polled = {.fd = fd, .events = POLLIN};
    struct epoll_event event = {.events = EPOLLIN};
    const int set = epoll_create1(0);
    epoll_ctl(set, EPOLL_CTL_ADD, fd, &event);
    uint64_t times = 0;
    if (strcmp(argv[2], "poll") == 0) poll(&polled, 1, -1);
    if (strcmp(argv[2], "epoll") == 0) epoll_wait(set, &event, 1, -1);
    return read(fd, &times, sizeof times) < 0;
}

static void* outlive(void* argument) {
    (void)argument;
    futex(word_of(0), FUTEX_WAIT, load(word_of(0)), NULL);
    exit(6);
}

static int mode_leader_leaves(char** argv) {
    (void)argv;
    attach_and_map();
    pthread_t thread;
    pthread_create(&thread, NULL, outlive, NULL);
    pthread_exit(NULL);
}

/* --- processors, descriptors, signals, and testees that do not end */

/* Chooses the processor where it is just now, and waits. */
static int mode_chooses_its_processor(char** argv) {
    (void)argv;
    attach_and_map();
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(sched_getcpu(), &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) return 8;
    futex(word_of(0), FUTEX_WAIT, load(word_of(0)), NULL);
    return 0;
}

static int mode_close_all(char** argv) {
    (void)argv;
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

static int mode_signals(char** argv) {
    (void)argv;
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

static int mode_flood(char** argv) {
    (void)argv;
    attach_all();
    static char text[65536];
    memset(text, 'x', sizeof text);
    for (;;) {
        if (write(1, text, sizeof text) < 0) return 1;
    }
}

static int mode_hang(char** argv) {
    (void)argv;
    attach_and_map();
    while (count > 0) pause();
    return 0;
}

static int mode_spin(char** argv) {
    (void)argv;
    attach_and_map();
    for (volatile unsigned i = 0; count > 0; ++i) continue;
    return 0;
}

const struct mode kOtherModes[] = {
    {"write-data", mode_write_data},
    {"write-data-handled", mode_write_data_handled},
    {"read-past", mode_read_past},
    {"read-after-unmap", mode_read_after_unmap},
    {"read-after-free", mode_read_after_free},
    {"write-data-at-once", mode_write_data_at_once},
    {"abort", mode_abort},
    {"jump-to-zero", mode_jump_to_zero},
    {"accesses", mode_accesses},
    {"flags", mode_flags},
    {"crowd", mode_crowd},
    {"blocked-on", mode_blocked_on},
    {"guarded-threads", mode_guarded_threads},
    {"guarded-calls", mode_guarded_calls},
    {"threads", mode_threads},
    {"thread-churn", mode_thread_churn},
    {"all-asleep", mode_all_asleep},
    {"leader-leaves", mode_leader_leaves},
    {"chooses-its-processor", mode_chooses_its_processor},
    {"close-all", mode_close_all},
    {"signals", mode_signals},
    {"flood", mode_flood},
    {"hang", mode_hang},
    {"spin", mode_spin},
    {NULL, NULL},
};
