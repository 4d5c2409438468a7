/* SPDX-License-Identifier: MIT
 *
 * The modes that change an instruction of the program's own file between two calls.
 */
#define _GNU_SOURCE
#include "testee.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kFirst = 64, kSecond = 72, kDistanceAt = 2, kPage = 4096 };

/* Loads 4 bytes at its argument plus kFirst. Byte kDistanceAt of the code is that distance. The
 * page contains no other code. */
extern unsigned char patched_load[];
__asm__(
    ".text\n.balign 4096\n.globl patched_load\npatched_load:\n"
    "mov 64(%rdi), %eax\n ret\n.balign 4096\n");

static int load_by_patched(void) {
    return ((int (*)(const void*))(uintptr_t)patched_load)(maps[0]);
}

static int run_patched(int (*patch)(void)) {
    attach_and_map();
    say("first", load_by_patched());
    if (patch() != 0) return 35;
    say("second", load_by_patched());
    return 0;
}

static int patch_by_mprotect(void) {
    if (mprotect(patched_load, kPage, PROT_READ | PROT_WRITE) != 0) return -1;
    patched_load[kDistanceAt] = kSecond;
    return mprotect(patched_load, kPage, PROT_READ | PROT_EXEC);
}

/* The kernel writes to pages that the program cannot write. */
static int patch_by_mem(void) {
    const unsigned char distance = kSecond;
    int mem = open("/proc/self/mem", O_RDWR | O_CLOEXEC);
    return pwrite(mem, &distance, 1, (off_t)(uintptr_t)(patched_load + kDistanceAt)) == 1 ? 0 : -1;
}

static int mode_patched_by_mprotect(char** argv) {
    (void)argv;
    return run_patched(patch_by_mprotect);
}

static int mode_patched_by_mem(char** argv) {
    (void)argv;
    return run_patched(patch_by_mem);
}

const struct mode kPatchModes[] = {
    {"patched-by-mprotect", mode_patched_by_mprotect},
    {"patched-by-mem", mode_patched_by_mem},
    {NULL, NULL},
};
