/* SPDX-License-Identifier: MIT
 *
 * Further modes of the tracer's test testee: child processes, and other programs.
 */
#define _GNU_SOURCE
#include "testee.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static pid_t start_true(void) {
    char* arguments[] = {"/bin/true", NULL};
    pid_t child = -1;
    posix_spawn(&child, arguments[0], NULL, NULL, arguments, environ);
    return child;
}

/* -1: a signal has ended it. */
static int exit_status_of(pid_t child) {
    int status = 0;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int mode_fork(char** argv) {
    (void)argv;
    attach_and_map();
    pid_t child = fork();
    if (child == 0) {
        count = kSlots;
        _exit(attach_with(fds, &count, &capacity));
    }
    say("child", exit_status_of(child));
    say("spawned", exit_status_of(start_true()));
    return 0;
}

/* Children that touch the mapping, or the parent's memory, while the testee does as well. */
static int mode_fork_and_read(char** argv) {
    (void)argv;
    attach_and_map();
    pid_t child = fork();
    if (child == 0) _exit(maps[0][0]);
    int seen = *(volatile unsigned char*)maps[0];
    say("child", exit_status_of(child));
    child = start_true();
    seen += *(volatile unsigned char*)maps[0];
    say("spawned", exit_status_of(child));
    return seen;
}

static void* spawn_without_the_leader(void* unused) {
    (void)unused;
    char state = 0;
    while (state != 'Z') {
        FILE* file = fopen("/proc/self/stat", "r");
        if (file == NULL || fscanf(file, "%*d %*s %c", &state) != 1) exit(8);
        fclose(file);
    }
    int seen = *(volatile unsigned char*)maps[0];
    const int status = exit_status_of(start_true());
    seen += *(volatile unsigned char*)maps[0];
    say("spawned", status);
    exit(seen);
}

/* The first thread has ended, and has no memory any more, when another one starts a program. */
static int mode_spawn_without_the_leader(char** argv) {
    (void)argv;
    attach_and_map();
    pthread_t thread;
    pthread_create(&thread, NULL, spawn_without_the_leader, NULL);
    pthread_exit(NULL);
}

/* A grandchild that outlives both, in a session of its own. */
static int mode_daemon(char** argv) {
    (void)argv;
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

static long clone3_untraced(void) {
    uint64_t arguments[8] = {[0] = CLONE_UNTRACED, [4] = SIGCHLD}; /* flags, exit_signal */
    return syscall(SYS_clone3, arguments, sizeof arguments);
}

/*
 * Names its descendants, and waits: children that have ended and that it never waits for, a daemon,
 * and a child that requests not to be traced.
 */
static int mode_leaves_processes(char** argv) {
    (void)argv;
    attach_and_map();
    for (int i = 0; i < 3; i++) {
        const pid_t ended = fork();
        if (ended == 0) _exit(0);
        say("process", ended);
    }
    const pid_t child = fork();
    if (child == 0) {
        setsid();
        const pid_t daemon = fork();
        while (daemon == 0) pause();
        say("process", daemon);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    const long hidden = clone3_untraced();
    while (hidden == 0) pause();
    say("process", hidden);
    futex(word_of(0), FUTEX_WAIT, load(word_of(0)), NULL);
    return 0;
}

/* Each child continues as its parent does. */
static int mode_fork_bomb(char** argv) {
    (void)argv;
    attach_and_map();
    while (fork() >= 0) continue;
    return 1;
}

/* The first process of its children's namespace has ended, so the kernel refuses each further one.
 * (A test as root cannot reach RLIMIT_NPROC.) */
static int mode_no_more_processes(char** argv) {
    pid_t child;
    (void)argv;
    attach_and_map();
    if (unshare(CLONE_NEWPID) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) return 97;
    child = fork();
    if (child == 0) _exit(0);
    waitpid(child, NULL, 0);
    child = fork();
    if (child == 0) _exit(0);
    child = vfork();
    if (child == 0) _exit(0);
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

/* Like LeakSanitizer's helper: in the same memory, and requesting not to be traced. */
static int untraced(void* argument) {
    (void)argument;
    void* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return munmap(page, 4096) == 0 ? 21 : 22;
}

static int mode_untraced_clone(char** argv) {
    (void)argv;
    attach_and_map();
    const size_t stack_bytes = 65536;
    char* stack = malloc(stack_bytes);
    pid_t child = clone(untraced, stack + stack_bytes,
                        CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_UNTRACED | SIGCHLD, NULL);
    int status = 0;
    waitpid(child, &status, 0);
    say("untraced", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return 0;
}

const struct mode kProcessModes[] = {
    {"fork", mode_fork},
    {"fork-and-read", mode_fork_and_read},
    {"spawn-without-the-leader", mode_spawn_without_the_leader},
    {"daemon", mode_daemon},
    {"leaves-processes", mode_leaves_processes},
    {"fork-bomb", mode_fork_bomb},
    {"no-more-processes", mode_no_more_processes},
    {"vfork-exec", mode_vfork_exec},
    {"exec", mode_exec},
    {"untraced-clone", mode_untraced_clone},
    {NULL, NULL},
};
