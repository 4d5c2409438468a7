/* SPDX-License-Identifier: MIT
 *
 * The part of the tracer's test testee with signal handlers, a seccomp filter and an end of its
 * own.
 */
#define _GNU_SOURCE
#include "testee.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kPages = 16, kPage = 4096, kAttachCall = 1091 };

/* --- signals blocked where the ring is read, handled where it is not */

static unsigned char* lazy;
static volatile int opened;
static volatile int stop;

static void open_page(int number, siginfo_t* info, void* context) {
    (void)number;
    (void)context;
    size_t offset = (size_t)((unsigned char*)info->si_addr - lazy);
    if (offset >= kPages * kPage) _exit(80);
    ++opened;
    mprotect(lazy + offset / kPage * kPage, kPage, PROT_READ | PROT_WRITE);
}

static void open_page_too(int number, siginfo_t* info, void* context) {
    open_page(number, info, context);
}

static void* read_with_blocked_signals(void* unused) {
    volatile uint64_t* write_pos = (volatile uint64_t*)(maps[0] + 64);
    uint64_t sum = 0;
    while (!stop) {
        for (int i = 0; i < 10; ++i) sum += *write_pos;
        sigset_t mask;
        struct sigaction action;
        pthread_sigmask(SIG_SETMASK, NULL, &mask);
        if (!sigismember(&mask, SIGSEGV) || !sigismember(&mask, SIGTRAP)) _exit(81);
        sigaction(SIGSEGV, NULL, &action);
        if (action.sa_sigaction != open_page && action.sa_sigaction != open_page_too) _exit(82);
    }
    return sum == 1 ? unused : NULL;
}

static int mode_blocked_signals(char** argv) {
    (void)argv;
    lazy = mmap(NULL, kPages * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    attach_and_map();
    sigset_t every, before;
    sigfillset(&every);
    pthread_sigmask(SIG_BLOCK, &every, &before);
    pthread_t readers[2];
    for (int i = 0; i < 2; ++i) pthread_create(&readers[i], NULL, read_with_blocked_signals, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    while (load(word_of(0)) == 0) {
        for (int i = 0; i < kPages; ++i) {
            int until = opened + 1;
            ((volatile unsigned char*)lazy)[i * kPage]++;
            if (opened != until) _exit(83);
        }
        mprotect(lazy, kPages * kPage, PROT_NONE);
        /* Another handler, which stays. */
        struct sigaction there;
        action.sa_sigaction = action.sa_sigaction == open_page ? open_page_too : open_page;
        sigaction(SIGSEGV, &action, NULL);
        for (int i = 0; i < 10; ++i) {
            sigaction(SIGSEGV, NULL, &there);
            if (there.sa_sigaction != action.sa_sigaction) _exit(84);
        }
    }
    stop = 1;
    for (int i = 0; i < 2; ++i) pthread_join(readers[i], NULL);
    return 0;
}

/* --- a filter of its own, after the first attach */

static int mode_own_filter(char** argv) {
    (void)argv;
    count = kSlots;
    if (attach_with(fds, &count, &capacity) != 0) return 90;
#define LET_PASS(number)                                 \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        LET_PASS(kAttachCall),
        LET_PASS(SYS_exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 91;
    _exit(attach_with(fds, &count, &capacity));
}

/* --- another thread ends the process while this one attaches */

static void* end_soon(void* unused) {
    usleep((useconds_t)(getpid() % 50) * 20);
    _exit(78);
    return unused;
}

static int mode_end_in_attach(char** argv) {
    (void)argv;
    pthread_t thread;
    pthread_create(&thread, NULL, end_soon, NULL);
    for (;;) {
        count = kSlots;
        if (attach_with(fds, &count, &capacity) != 0) return 90;
        for (int i = 0; i < count; ++i) close(fds[i]);
    }
}

const struct mode kSignalModes[] = {
    {"blocked-signals", mode_blocked_signals},
    {"own-filter", mode_own_filter},
    {"end-in-attach", mode_end_in_attach},
    {NULL, NULL},
};
