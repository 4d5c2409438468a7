/* SPDX-License-Identifier: MIT
 *
 * The modes in which a thread of the testee cannot execute a call of the tracer.
 */
#define _GNU_SOURCE
#include "testee.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kPage = 4096 };

/* --- the first thread loses its rseq area while it sleeps */

/* Of glibc 2.35 and later. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

static int is_about_to_pause;

static char state_of(pid_t tid) {
    char path[64], text[256] = "";
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
    const int fd = open(path, O_RDONLY);
    const ssize_t got = read(fd, text, sizeof text - 1);
    close(fd);
    const char* end = got > 0 ? strrchr(text, ')') : NULL;
    return end != NULL ? end[2] : '?';
}

/* After the munmap, only calls without thread-local storage of the first thread. */
static void* unmap_and_wait(void* page) {
    while (!__atomic_load_n(&is_about_to_pause, __ATOMIC_ACQUIRE)) usleep(1000);
    while (state_of(getpid()) != 'S') usleep(1000);
    syscall(SYS_munmap, page, kPage);
    for (;;) syscall(SYS_futex, word_of(0), FUTEX_WAIT, load(word_of(0)), NULL, NULL, 0);
    return NULL;
}

static int mode_unmap_rseq_area(char** argv) {
    (void)argv;
    attach_and_map();
    if (&__rseq_size == NULL || __rseq_size == 0) return kNotPossibleHere;
    const uintptr_t area = (uintptr_t)__builtin_thread_pointer() + (uintptr_t)__rseq_offset;
    pthread_t thread;
    pthread_create(&thread, NULL, unmap_and_wait, (void*)(area & ~(uintptr_t)(kPage - 1)));
    __atomic_store_n(&is_about_to_pause, 1, __ATOMIC_RELEASE);
    for (;;) pause();
    return 0;
}

/* --- the last syscall instruction that the tracer has seen is gone */

static int mode_hide_syscall_instruction(char** argv) {
    (void)argv;
    attach_and_map();
    /* mov %rdi,%rax; mov %rsi,%rdi; mov %rdx,%rsi; syscall; ret */
    const unsigned char code[] = {0x48, 0x89, 0xf8, 0x48, 0x89, 0xf7,
                                  0x48, 0x89, 0xd6, 0x0f, 0x05, 0xc3};
    const int writable = PROT_READ | PROT_WRITE;
    void* page = mmap(NULL, kPage, writable, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void* other = mmap(NULL, kPage, writable, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, code, sizeof code);
    mprotect(page, kPage, PROT_READ | PROT_EXEC);
    long (*call)(long, void*, size_t);
    memcpy(&call, &page, sizeof call);
    say("unmapped", call(SYS_munmap, other, kPage));
    /* With a filter, the tracer does not see this call. */
    syscall(SYS_pkey_mprotect, page, kPage, PROT_NONE, -1);
    say("hidden", 0);
    for (;;) pause();
    return 0;
}

const struct mode kStuckModes[] = {
    {"unmap-rseq-area", mode_unmap_rseq_area},
    {"hide-syscall-instruction", mode_hide_syscall_instruction},
    {NULL, NULL},
};
