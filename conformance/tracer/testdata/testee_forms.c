/* SPDX-License-Identifier: MIT
 *
 * The third part of the tracer's test testee: instructions of every form that touches a buffer. It
 * executes each once with known registers. Then it prints the effects: general registers, flags,
 * vector registers, the metadata page and its own memory. Two runs at the same addresses, with and
 * without guards, must print the same.
 */
#define _GNU_SOURCE
#include "testee.h"

#include <cpuid.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kAx, kCx, kDx, kBx, kSp, kBp, kSi, kDi };

/* The assembler below uses the offsets. */
struct state {
    uint64_t registers[16]; /* 0, in the order of the encoding */
    uint64_t flags;         /* 128 */
    uint64_t vectors;       /* 136: the bytes of a vector register: 16, 32 or 64 */
    uint64_t opmasks[8];    /* 144 */
    uint64_t unused[6];     /* 208 */
    uint8_t vector[32][64]; /* 256 */
};

/* Moves vector registers from and to the state that rdi points to. */
#define EIGHT(what, a, b, c, d, e, f, g, h) \
    what(a) what(b) what(c) what(d) what(e) what(f) what(g) what(h)
#define EACH_LOW(what)                  \
    EIGHT(what, 0, 1, 2, 3, 4, 5, 6, 7) \
    EIGHT(what, 8, 9, 10, 11, 12, 13, 14, 15)
#define EACH_HIGH(what)                         \
    EIGHT(what, 16, 17, 18, 19, 20, 21, 22, 23) \
    EIGHT(what, 24, 25, 26, 27, 28, 29, 30, 31)
#define EACH_MASK(what) what(1) what(2) what(3) what(4) what(5) what(6) what(7)
#define IN16(n) "movups 256+64*" #n "(%rdi), %xmm" #n "\n"
#define IN32(n) "vmovups 256+64*" #n "(%rdi), %ymm" #n "\n"
#define IN64(n) "vmovups 256+64*" #n "(%rdi), %zmm" #n "\n"
#define INMASK(n) "kmovq 144+8*" #n "(%rdi), %k" #n "\n"
#define OUT16(n) "movups %xmm" #n ", 256+64*" #n "(%rdi)\n"
#define OUT32(n) "vmovups %ymm" #n ", 256+64*" #n "(%rdi)\n"
#define OUT64(n) "vmovups %zmm" #n ", 256+64*" #n "(%rdi)\n"
#define OUTMASK(n) "kmovq %k" #n ", 144+8*" #n "(%rdi)\n"

__asm__(
    ".text\n"
    "vectors_in:\n"
    "cmpq $32, 136(%rdi)\n ja 2f\n je 1f\n" EACH_LOW(IN16) "ret\n"
    "1:\n" EACH_LOW(IN32) "ret\n"
    "2:\n" EACH_LOW(IN64) EACH_HIGH(IN64) EACH_MASK(INMASK) "ret\n"
    "vectors_out:\n"
    "cmpq $32, 136(%rdi)\n ja 2f\n je 1f\n" EACH_LOW(OUT16) "ret\n"
    "1:\n" EACH_LOW(OUT32) "ret\n"
    "2:\n" EACH_LOW(OUT64) EACH_HIGH(OUT64) EACH_MASK(OUTMASK) "ret\n");

#define EACH_REGISTER(what)                                                                        \
    what(0, rax) what(8, rcx) what(16, rdx) what(24, rbx) what(40, rbp) what(48, rsi) what(64, r8) \
        what(72, r9) what(80, r10) what(88, r11) what(96, r12) what(104, r13) what(112, r14)       \
            what(120, r15)
#define LOAD(offset, name) "mov " #offset "(%rdi), %" #name "\n"
#define STORE(offset, name) "mov %" #name ", " #offset "(%rdi)\n"

/* A function of a state: loads it, executes the text, and stores it. */
#define FORM(name, text)                   \
    void form_##name(struct state* state); \
    __asm__(".text\n.globl form_" #name "\nform_" #name                                         \
            ":\n"                                                                               \
            "push %rbx\n push %rbp\n push %r12\n push %r13\n push %r14\n push %r15\n push %rdi\n" \
            "fninit\n call vectors_in\n pushq 128(%rdi)\n popfq\n" EACH_REGISTER(LOAD)           \
            "mov 56(%rdi), %rdi\n" text                                                          \
            "\n pushfq\n cld\n push %rdi\n mov 16(%rsp), %rdi\n" EACH_REGISTER(STORE)            \
            "popq 56(%rdi)\n popq 128(%rdi)\n call vectors_out\n"                                \
            "pop %rdi\n pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbp\n pop %rbx\n ret\n")

#define X(width, name, text, variant) FORM(name, text);
#include "forms.inc"
#undef X

static const struct form {
    const char* name;
    void (*run)(struct state* state);
    int variant;
    uint64_t vectors; /* the least bytes of a vector register */
} kForms[] = {
#define X(width, name, text, variant) {#name, form_##name, variant, width},
#include "forms.inc"
#undef X
};

enum { kScratchAt = 512, kScratchBytes = 1024, kOwnBytes = 16384 };
enum { kNeedsLow = 9 }; /* a variant of forms with addresses of 32 bits */

static unsigned char* own;
static uint64_t vector_bytes;

static uint64_t digest(const void* bytes, size_t count) {
    const unsigned char* at = bytes;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < count; ++i) hash = (hash ^ at[i]) * 0x100000001b3u;
    return hash;
}

static void fill(unsigned char* at, size_t count, unsigned seed) {
    for (size_t i = 0; i < count; ++i) {
        seed = seed * 1103515245u + 12345u;
        at[i] = (unsigned char)(seed >> 16);
    }
}

/* Uses system calls: the kernel's accesses are not those of the program. */
static void put_metadata(int fd) {
    unsigned char bytes[kScratchBytes];
    fill(bytes, sizeof bytes, 7);
    if (pwrite(fd, bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes ||
        pread(fd, maps[0] + kScratchAt, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        exit(20);
}

static uint64_t metadata_digest(int fd) {
    unsigned char bytes[4096];
    if (pwrite(fd, maps[0], sizeof bytes, 0) != (ssize_t)sizeof bytes ||
        pread(fd, bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        exit(21);
    return digest(bytes, sizeof bytes);
}

static uint64_t fs_base(void) {
    uint64_t value;
    __asm__("mov %%fs:0, %0" : "=r"(value)); /* the thread's own block begins with its address */
    return value;
}

static void prepare(struct state* state, int variant) {
    unsigned char* scratch = maps[0] + kScratchAt;
    unsigned char* data = maps[0] + kMetadataBytes;
    memset(state, 0, sizeof *state);
    fill((unsigned char*)state, sizeof *state, 3);
    state->vectors = vector_bytes;
    state->flags = 0x202;
    fill(own, kOwnBytes, 9);
    uint64_t* r = state->registers;
    r[kCx] = 5;
    r[kBx] = (uint64_t)(uintptr_t)(scratch + 256);
    r[kSi] = (uint64_t)(uintptr_t)(scratch + 512);
    r[8] = (uint64_t)(uintptr_t)(data + 1024);
    r[9] = r[kDi] = (uint64_t)(uintptr_t)(own + 8192);
    if (variant == 1 || variant == 4 || variant == 5)
        r[kSi] = (uint64_t)(uintptr_t)(data + 8192 - 4); /* across a page */
    if (variant == 2) r[kSi] = (uint64_t)(uintptr_t)(data + 300);
    if (variant == 5) memcpy(own + 8192, data + 8192 - 4, 100);
    if (variant == 6) r[kDx] = (uint64_t)(uintptr_t)data / 2;
    if (variant == 7) r[kDx] = (uint64_t)(uintptr_t)data - fs_base();
    if (variant == 8) r[kSi] = (uint64_t)(uintptr_t)(data + 300) - fs_base();
    if (variant == kNeedsLow) /* what the address has above its 32 bits is ignored */
        r[kSi] = (uint64_t)(uintptr_t)(scratch + 512) | (uint64_t)1 << 40;
}

static void report_state(const struct form* form, const struct state* state, int fd) {
    char line[1024];
    int length = snprintf(line, sizeof line, "%s", form->name);
    for (int i = 0; i < 16; ++i)
        length += snprintf(line + length, sizeof line - (size_t)length, " %lx",
                           i == kSp ? 0 : (unsigned long)state->registers[i]);
    length += snprintf(line + length, sizeof line - (size_t)length,
                       " flags %lx vectors %lx masks %lx metadata %lx own %lx\n",
                       (unsigned long)(state->flags & 0xcd5),
                       (unsigned long)digest(state->vector, sizeof state->vector),
                       (unsigned long)digest(state->opmasks, sizeof state->opmasks),
                       (unsigned long)metadata_digest(fd), (unsigned long)digest(own, kOwnBytes));
    if (write(1, line, (size_t)length) != length) exit(22);
}

static unsigned char* in_data;

/* Leaves pointers into the buffer, and flags, in registers that a system call might use. */
static void on_interruption(int number) {
    (void)number;
    __asm__ volatile(
        "mov %0, %%rdi\n mov %%rdi, %%rsi\n mov %%rdi, %%rdx\n mov %%rdi, %%r8\n mov %%rdi, %%r9\n"
        " mov %%rdi, %%r10\n pxor %%xmm1, %%xmm1\n stc\n"
        :
        : "m"(in_data)
        : "rdi", "rsi", "rdx", "r8", "r9", "r10", "xmm1", "cc");
}

/* Executes all forms, or the form that argv[2] names. If `is_low`, the ring is below 2 GiB. */
static int run_forms(char** argv, bool is_low) {
    static char handlers_stack[65536]; /* some forms have their stack in the buffer */
    const stack_t stack = {.ss_sp = handlers_stack, .ss_size = sizeof handlers_stack};
    sigaltstack(&stack, NULL);
    const struct sigaction action = {.sa_handler = on_interruption,
                                     .sa_flags = SA_RESTART | SA_ONSTACK};
    sigaction(SIGUSR1, &action, NULL);
    vector_bytes = __builtin_cpu_supports("avx512vbmi2") && __builtin_cpu_supports("avx512bw") ? 64
                   : __builtin_cpu_supports("avx2")                                            ? 32
                                                                                               : 16;
    own = mmap(NULL, kOwnBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = memfd_create("copy", 0);
    map_flags = is_low ? MAP_32BIT : 0;
    attach_and_map();
    in_data = maps[0] + kMetadataBytes;
    futex(word_of(0), FUTEX_WAIT, 0, NULL); /* the test sets its guards now, or sets none */
    static struct state state;
    for (size_t i = 0; i < sizeof kForms / sizeof *kForms; ++i) {
        const struct form* form = &kForms[i];
        if (form->vectors > vector_bytes || (form->variant == kNeedsLow && !is_low)) continue;
        if (argv[2] != NULL && strcmp(argv[2], form->name) != 0) continue;
        put_metadata(fd);
        prepare(&state, form->variant);
        form->run(&state);
        report_state(form, &state, fd);
    }
    return 0;
}

static int mode_forms(char** argv) {
    return run_forms(argv, false);
}

static int mode_forms_low(char** argv) {
    return run_forms(argv, true);
}

const struct mode kFormModes[] = {
    {"forms", mode_forms},
    {"forms-low", mode_forms_low},
    {NULL, NULL},
};
