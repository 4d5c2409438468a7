/* SPDX-License-Identifier: MIT
 *
 * The fourth part of the tracer's test testee: the same 64 bytes of a buffer's data copied by
 * different instructions, and loops of accesses for measuring.
 */
#define _GNU_SOURCE
#include "testee.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { kCopied = 64, kMarkerAt = 300, kIterations = 9, kDataAt = kMetadataBytes + 1024 };

static void with_words(unsigned char* to, const unsigned char* from) {
    for (int i = 0; i < kCopied; i += 8)
        __asm__ volatile("mov (%0), %%rax\n mov %%rax, (%1)"
                         :
                         : "r"(from + i), "r"(to + i)
                         : "rax", "memory");
}

static void with_movsb(unsigned char* to, const unsigned char* from) {
    size_t left = kCopied;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
}

static void with_movsq(unsigned char* to, const unsigned char* from) {
    size_t left = kCopied / 8;
    __asm__ volatile("rep movsq" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
}

static void with_movsb_down(unsigned char* to, const unsigned char* from) {
    size_t left = kCopied;
    to += kCopied - 1;
    from += kCopied - 1;
    __asm__ volatile("std\n rep movsb\n cld" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
}

static void with_sse(unsigned char* to, const unsigned char* from) {
    for (int i = 0; i < kCopied; i += 16)
        __asm__ volatile("movups (%0), %%xmm1\n movups %%xmm1, (%1)"
                         :
                         : "r"(from + i), "r"(to + i)
                         : "xmm1", "memory");
}

static void with_avx(unsigned char* to, const unsigned char* from) {
    for (int i = 0; i < kCopied; i += 32)
        __asm__ volatile("vmovdqu (%0), %%ymm1\n vmovdqu %%ymm1, (%1)\n vzeroupper"
                         :
                         : "r"(from + i), "r"(to + i)
                         : "xmm1", "memory");
}

static void with_gather(unsigned char* to, const unsigned char* from) {
    static const uint64_t kIndexes[4] = {0, 1, 2, 3};
    for (int i = 0; i < kCopied; i += 32)
        __asm__ volatile(
            "vmovdqu (%2), %%ymm2\n vpcmpeqd %%ymm3, %%ymm3, %%ymm3\n"
            " vpgatherqq %%ymm3, (%0,%%ymm2,8), %%ymm1\n vmovdqu %%ymm1, (%1)\n vzeroupper"
            :
            : "r"(from + i), "r"(to + i), "r"(kIndexes)
            : "xmm1", "xmm2", "xmm3", "memory");
}

static void with_avx512(unsigned char* to, const unsigned char* from) {
    __asm__ volatile("vmovdqu64 (%0), %%zmm1\n vmovdqu64 %%zmm1, (%1)\n vzeroupper"
                     :
                     : "r"(from), "r"(to)
                     : "xmm1", "memory");
}

static void with_avx512_gather(unsigned char* to, const unsigned char* from) {
    static const uint32_t kIndexes[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    __asm__ volatile(
        "vmovdqu64 (%2), %%zmm2\n kxnorw %%k1, %%k1, %%k1\n"
        " vpgatherdd (%0,%%zmm2,4), %%zmm1%{%%k1%}\n vmovdqu64 %%zmm1, (%1)\n vzeroupper"
        :
        : "r"(from), "r"(to), "r"(kIndexes)
        : "xmm1", "xmm2", "memory");
}

/* Before each copy it reads a byte of the metadata page: there the test may write new data. */
static void copy_all_ways(const char* name, void (*copy)(unsigned char*, const unsigned char*)) {
    unsigned char line[kCopied + 32];
    for (int iteration = 0; iteration < kIterations; ++iteration) {
        (void)*(volatile unsigned char*)(maps[0] + kMarkerAt);
        size_t length = strlen(name);
        memcpy(line, name, length);
        line[length++] = ' ';
        copy(line + length, maps[0] + kDataAt);
        length += kCopied;
        line[length++] = '\n';
        if (write(1, line, length) != (ssize_t)length) exit(30);
    }
}

static int mode_copies(char** argv) {
    (void)argv;
    attach_and_map();
    copy_all_ways("words", with_words);
    copy_all_ways("movsb", with_movsb);
    copy_all_ways("movsq", with_movsq);
    copy_all_ways("movsb_down", with_movsb_down);
    copy_all_ways("sse", with_sse);
    if (__builtin_cpu_supports("avx2")) {
        copy_all_ways("avx", with_avx);
        copy_all_ways("gather", with_gather);
    }
    if (__builtin_cpu_supports("avx512f")) {
        copy_all_ways("avx512", with_avx512);
        copy_all_ways("gather512", with_avx512_gather);
    }
    return 0;
}

/* Its filter refuses the call that makes guard pages. */
static int mode_filtered(char** argv) {
    (void)argv;
    attach_and_map();
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof rules / sizeof *rules, rules};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 32;
    futex(word_of(0), FUTEX_WAIT, 0, NULL);
    uint64_t seen = *(volatile uint64_t*)(maps[0] + 64);
    *(volatile unsigned char*)(maps[0] + kNeedWake) = 1;
    say("seen", (long)seen);
    return 0;
}

/* For the benchmark: one kind of access in an endless loop. */
static int mode_loop(char** argv) {
    attach_and_map();
    const char* kind = argv[2] != NULL ? argv[2] : "mov";
    const unsigned char* data = maps[0] + kDataAt;
    while (strcmp(kind, "mov") == 0) (void)*(volatile uint64_t*)(maps[0] + 64);
    while (strcmp(kind, "sse") == 0)
        __asm__ volatile("movups (%0), %%xmm1" : : "r"(data) : "xmm1", "memory");
    while (strcmp(kind, "twice") == 0)
        __asm__ volatile("movups (%0,%0), %%xmm1" : : "r"((uintptr_t)data / 2) : "xmm1", "memory");
    while (strcmp(kind, "register") == 0) __asm__ volatile("add $1, %%rax" : : : "rax");
    return 31;
}

static int copy_and_sum(size_t data_offset) {
    attach_and_map();
    unsigned char copy[4];
    unsigned char* to = copy;
    const unsigned char* from = maps[0] + kMetadataBytes + data_offset;
    size_t left = sizeof copy;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(left) : : "memory");
    say("sum", copy[0] + copy[1] + copy[2] + copy[3]);
    return 0;
}

static int mode_rep_movsb(char** argv) {
    (void)argv;
    return copy_and_sum(5);
}

static int mode_rep_movsb_across_pages(char** argv) {
    (void)argv;
    return copy_and_sum(4096 - 3);
}

const struct mode kCopyModes[] = {
    {"copies", mode_copies},
    {"filtered", mode_filtered},
    {"loop", mode_loop},
    {"rep-movsb", mode_rep_movsb},
    {"rep-movsb-across-pages", mode_rep_movsb_across_pages},
    {NULL, NULL},
};
