/* SPDX-License-Identifier: MIT
 *
 * The fifth part of the tracer's test testee: calls after which a thread, or a child, continues
 * with other registers than those of the caller. During each call, registers that the call ignores
 * point into a buffer.
 */
#define _GNU_SOURCE
#include "testee.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* In the kernel's format: with the return from the handler, which the C library would choose. */
struct kernel_action {
    void (*handler)(int number);
    unsigned long flags;
    void (*restorer)(void);
    unsigned long mask;
};

enum { kRestorer = 0x04000000, kMarks = 6, kSignalSetBytes = 8 };

void return_from_handler(void);

/* The assembler uses this name. */
unsigned char* in_buffer;

/* rt_sigreturn, with a pointer into the buffer in every register that a call may read. */
__asm__(
    ".text\n"
    "return_from_handler:\n"
    " mov in_buffer(%rip), %rdi\n"
    " mov %rdi, %rsi\n mov %rdi, %rdx\n mov %rdi, %r10\n mov %rdi, %r8\n mov %rdi, %r9\n"
    " mov $15, %eax\n"
    " syscall\n");

static volatile sig_atomic_t handled;

static void note_signal(int number) {
    handled += number == SIGUSR1;
}

/* Sends itself a signal. `marks`: the values of the six argument registers before the call, and
 * then after it; the first three are the call's arguments. */
static void signal_itself(uint64_t marks[kMarks]) {
    __asm__ volatile(
        "mov (%0), %%rdi\n mov 8(%0), %%rsi\n mov 16(%0), %%rdx\n"
        " mov 24(%0), %%r10\n mov 32(%0), %%r8\n mov 40(%0), %%r9\n"
        " mov %1, %%eax\n"
        " syscall\n"
        " mov %%rdi, (%0)\n mov %%rsi, 8(%0)\n mov %%rdx, 16(%0)\n"
        " mov %%r10, 24(%0)\n mov %%r8, 32(%0)\n mov %%r9, 40(%0)\n"
        :
        : "b"(marks), "i"(SYS_tgkill)
        : "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory");
}

static int mode_signal_context(char** argv) {
    (void)argv;
    attach_and_map();
    in_buffer = maps[0] + kMetadataBytes;
    struct kernel_action action = {note_signal, kRestorer, return_from_handler, 0};
    if (syscall(SYS_rt_sigaction, SIGUSR1, &action, NULL, kSignalSetBytes) != 0) return 33;
    const uint64_t marks[kMarks] = {
        (uint64_t)getpid(), (uint64_t)gettid(), SIGUSR1, 1001, 1002, 1003};
    uint64_t after[kMarks];
    memcpy(after, marks, sizeof after);
    signal_itself(after);
    say("handled", handled);
    for (int i = 0; i < kMarks; ++i) say("kept", after[i] == marks[i]);
    return 0;
}

/* As fork does; the child says whether the register still points into the buffer. */
static int mode_child_registers(char** argv) {
    (void)argv;
    attach_and_map();
    in_buffer = maps[0] + kMetadataBytes;
    register uint64_t stack __asm__("rsi") = 0;
    register uint64_t parent_word __asm__("rdx") = 0;
    register uint64_t child_word __asm__("r10") = 0;
    register uint64_t storage __asm__("r8") = 0;
    register unsigned char* unread __asm__("r9") = in_buffer;
    long child = SYS_clone;
    __asm__ volatile("syscall"
                     : "+a"(child), "+r"(unread)
                     : "D"(SIGCHLD), "r"(stack), "r"(parent_word), "r"(child_word), "r"(storage)
                     : "rcx", "r11", "memory");
    unsigned char* const kept = unread;
    if (child == 0) _exit(kept == in_buffer ? 21 : 22);
    int status = 0;
    if (child < 0 || waitpid((pid_t)child, &status, 0) != child) return 34;
    say("parent kept", kept == in_buffer);
    say("child", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    return 0;
}

const struct mode kRegisterModes[] = {
    {"signal-context", mode_signal_context},
    {"child-registers", mode_child_registers},
    {NULL, NULL},
};
