/* SPDX-License-Identifier: MIT
 *
 * The modes that change the protection of pages of a mapping.
 */
#define _GNU_SOURCE
#include "testee.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kPage = 4096, kRw = PROT_READ | PROT_WRITE, kNoSuchBit = 0x100000 };

static int opened_to; /* what the handler opens a page to */
static volatile sig_atomic_t faults;

/* Opens the page of the fault. */
static void open_page(int number, siginfo_t* info, void* context) {
    (void)number, (void)context;
    uintptr_t page = (uintptr_t)info->si_addr & ~(uintptr_t)(kPage - 1);
    ++faults;
    if (mprotect((void*)page, kPage, opened_to) != 0) _exit(36);
}

static void handle_faults(int protection) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = open_page;
    action.sa_flags = SA_SIGINFO;
    opened_to = protection;
    if (sigaction(SIGSEGV, &action, NULL) != 0) exit(37);
}

static int error_of(void* at, size_t bytes, unsigned long protection) {
    return syscall(SYS_mprotect, at, bytes, protection) == 0 ? 0 : errno;
}

static volatile unsigned char* data(void) {
    return maps[0] + kMetadataBytes;
}

/* Some runtimes and hardened programs protect all that they have mapped once more. */
static int mode_protects_again(char** argv) {
    (void)argv;
    attach_and_map();
    say("metadata", error_of(maps[0], kMetadataBytes, kRw));
    say("data", error_of(maps[0] + kMetadataBytes, 2 * capacity, PROT_READ));
    say("word", (long)load(word_of(0)));
    say("byte", data()[5]);
    return 0;
}

/* Closes the data while it has nothing to read. A fault opens the page. */
static int mode_protects_while_idle(char** argv) {
    (void)argv;
    attach_and_map();
    handle_faults(PROT_READ);
    say("closed", error_of(maps[0] + kMetadataBytes, 2 * capacity, PROT_NONE));
    say("byte", data()[5]);
    say("faults", faults);
    say("byte", data()[5]);
    say("call", write(-1, maps[0] + kMetadataBytes + capacity, 1) == -1 ? errno : 0);
    int pipes[2];
    if (pipe(pipes) != 0) return 38;
    say("closed page in a call",
        write(pipes[1], maps[0] + kMetadataBytes + capacity, 1) == -1 ? errno : 0);
    say("open page in a call", write(pipes[1], maps[0] + kMetadataBytes, 1) == -1 ? errno : 0);
    say("faults", faults);
    return 0;
}

/* Opens three pages of the data one after the other, by one string instruction. */
static int mode_protects_pages(char** argv) {
    (void)argv;
    static unsigned char copy[3 * kPage];
    attach_and_map();
    handle_faults(PROT_READ);
    say("closed", error_of(maps[0] + kMetadataBytes, 2 * capacity, PROT_NONE));
    unsigned char* to = copy;
    const unsigned char* from = maps[0] + kMetadataBytes;
    size_t left = sizeof copy;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
    say("byte", copy[5]);
    say("faults", faults);
    return 0;
}

static int mode_protects_for_execution(char** argv) {
    (void)argv;
    attach_and_map();
    handle_faults(PROT_READ);
    say("only executable", error_of(maps[0] + kMetadataBytes, kPage, PROT_EXEC));
    say("byte", data()[5]);
    say("faults", faults);
    return 0;
}

/* Removes its last page before the guards. What is beside it, keeps its protection. */
static int mode_protects_and_cuts(char** argv) {
    (void)argv;
    attach_and_map();
    handle_faults(kRw);
    say("protected", error_of(maps[0] + kMetadataBytes, 2 * capacity, PROT_NONE));
    say("cut", munmap(maps[0] + mapping_bytes() - kPage, kPage));
    syscall(SYS_futex, word_of(0), FUTEX_WAKE, 1, NULL, NULL, 0);
    const struct timespec moment = {0, 1000000};
    futex(word_of(0), FUTEX_WAIT, load(word_of(0)), &moment);
    for (int i = 0; i < count; i++) *(volatile unsigned char*)(maps[i] + kNeedWake) = 1;
    say("faults", faults);
    return 0;
}

static int mode_protects_metadata(char** argv) {
    (void)argv;
    attach_and_map();
    handle_faults(kRw);
    say("closed", error_of(maps[0], kMetadataBytes, PROT_READ));
    say("word", (long)load(word_of(0)));
    say("faults", faults);
    *(volatile unsigned char*)(maps[0] + kNeedWake) = 1;
    say("faults", faults);
    *(volatile unsigned char*)(maps[0] + kNeedWake) = 0;
    say("faults", faults);
    return 0;
}

/* What the kernel answers, and how far it goes before it fails. */
static int mode_protects_wrongly(char** argv) {
    (void)argv;
    attach_and_map();
    handle_faults(kRw);
    size_t length = mapping_bytes();
    unsigned char* place =
        mmap(NULL, length + 3 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char* ring = place + kPage;
    munmap(place + kPage + length, 2 * kPage);
    if (mmap(ring, length, kRw, MAP_SHARED | MAP_FIXED, fds[0], 0) != ring) return 39;
    futex((uint32_t*)(ring + kWord), FUTEX_WAKE, 1, NULL);
    say("unaligned", error_of(ring + 1, kPage, PROT_READ));
    say("no bytes", error_of(ring, 0, PROT_READ));
    say("no such bit", error_of(ring, kPage, kNoSuchBit));
    say("too long", error_of(ring, (size_t)-kPage, PROT_READ));
    say("writable data", error_of(ring, length, kRw));
    say("to the hole", error_of(ring, length + kPage, PROT_READ));
    *(volatile unsigned char*)(ring + kNeedWake) = 1;
    say("faults", faults);
    say("with its neighbour", error_of(place, length + kPage, PROT_READ));
    *(volatile unsigned char*)(ring + kNeedWake) = 0;
    *(volatile unsigned char*)place = 1;
    say("faults", faults);
    return ring[kMetadataBytes + 5] == 42 ? 0 : 40;
}

const struct mode kProtectionModes[] = {
    {"protects-again", mode_protects_again},
    {"protects-and-cuts", mode_protects_and_cuts},
    {"protects-for-execution", mode_protects_for_execution},
    {"protects-metadata", mode_protects_metadata},
    {"protects-pages", mode_protects_pages},
    {"protects-while-idle", mode_protects_while_idle},
    {"protects-wrongly", mode_protects_wrongly},
    {NULL, NULL},
};
