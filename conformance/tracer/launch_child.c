/* SPDX-License-Identifier: MIT */
/*
 * See launch_child.h. A separate rule compiles this file, with the same options in every
 * configuration. Attributes would not suffice: no_sanitize("thread") keeps the calls at the entry
 * and the exit of a function, and no attribute removes coverage counters with every compiler.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "conformance/tracer/launch_child.h"

#include <asm/errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif
#define LAST_SIGNAL 64
#define FDS_WITHOUT_CLOSE_RANGE 4096 /* before Linux 5.11 */

/* sigaction in the kernel's format; all zero is SIG_DFL with nothing blocked. */
struct kernel_action {
    unsigned long handler, flags, restorer, mask;
};

/* Makes a system call with at most four arguments. Returns its result, or -errno. The fifth and
 * the sixth argument are 0, because some calls (prctl) refuse any other value. */
static long call(long number, long first, long second, long third, long fourth) {
    long result = number;
    register long r10 __asm__("r10") = fourth;
    register long r8 __asm__("r8") = 0;
    register long r9 __asm__("r9") = 0;

    __asm__ volatile("syscall"
                     : "+a"(result)
                     : "D"(first), "S"(second), "d"(third), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}

/* Does not return. If the write fails, the runner has ended. */
static void fail(int socket, long error, int at_exec, unsigned candidate) {
    const struct kmes_launch_failure failure = {(int)-error, at_exec, candidate};

    call(SYS_write, socket, (long)&failure, sizeof(failure), 0);
    call(SYS_exit_group, KMES_LAUNCH_FAILED, 0, 0, 0);
}

static long install_filter(const struct sock_fprog* filter) {
    if (filter->len == 0) return 0;
    /* SPEC_ALLOW: a traced call is slow enough without the mitigation that old kernels enable
     * with seccomp. */
    if (call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, (long)filter,
             0) == 0)
        return 0;
    return call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)filter, 0);
}

/*
 * Sets the signals of a fresh session, whatever the runner ignores or blocks. Exception: SIGXFSZ
 * stays ignored if it was ignored when the runner started, because the testee also inherits the
 * limit of file sizes. A handler of the runner never stays, because until execve() it would run in
 * the runner's memory.
 */
static void reset_signals(void) {
    const struct kernel_action fresh = {0, 0, 0, 0};
    struct kernel_action file_size = fresh;
    int number;

    call(SYS_rt_sigaction, SIGXFSZ, 0, (long)&file_size, sizeof(fresh.mask));
    for (number = 1; number <= LAST_SIGNAL; number++) {
        if (number == SIGXFSZ && file_size.handler == (unsigned long)SIG_IGN) continue;
        call(SYS_rt_sigaction, number, (long)&fresh, 0, sizeof(fresh.mask));
    }
    call(SYS_rt_sigprocmask, SIG_SETMASK, (long)&fresh.mask, 0, sizeof(fresh.mask));
}

/* All of `descriptors` are above these numbers, so none is overwritten before it is used. */
static long place_descriptors(const int* descriptors) {
    int fd;

    for (fd = 0; fd <= KMES_LAUNCH_LAST_FD; fd++) {
        const long error = call(SYS_dup2, descriptors[fd], fd, 0, 0);

        if (error < 0) return error;
    }
    if (call(SYS_close_range, KMES_LAUNCH_LAST_FD + 1, ~0U, CLOSE_RANGE_CLOEXEC, 0) == 0) return 0;
    for (fd = KMES_LAUNCH_LAST_FD + 1; fd < FDS_WITHOUT_CLOSE_RANGE; fd++)
        call(SYS_fcntl, fd, F_SETFD, FD_CLOEXEC, 0);
    return 0;
}

/* Sets limits, privileges and filters. Returns 0, or the first error. */
static long set_up(const struct kmes_launch_orders* orders) {
    const struct rlimit no_core = {0, 0};
    long error = place_descriptors(orders->descriptors);

    if (error < 0) return error;
    reset_signals();
    if (orders->fixed_addresses) call(SYS_personality, ADDR_NO_RANDOMIZE, 0, 0, 0);
    call(SYS_prlimit64, 0, RLIMIT_CORE, (long)&no_core, 0);
    if (orders->outer_filter.len == 0 && orders->filter.len == 0) return 0;
    error = call(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0);
    if (error == 0) error = install_filter(&orders->outer_filter);
    if (error == 0) error = install_filter(&orders->filter);
    return error;
}

/* As execvp: an existing file that cannot be executed takes precedence over a missing one.
 * Returns only if none could be executed. */
static void execute(const struct kmes_launch_orders* orders) {
    long reported = -ENOENT;
    unsigned failed = 0, i;

    for (i = 0; orders->candidates[i]; i++) {
        const long error = call(SYS_execve, (long)orders->candidates[i], (long)orders->arguments,
                                (long)orders->environment, 0);

        if (error == -ENOENT || error == -ENOTDIR) continue;
        reported = error;
        failed = i;
        if (error != -EACCES) break;
    }
    fail(orders->socket, reported, 1, failed);
}

/* Everything between clone and execve. Only the assembler of kmes_launch_clone calls it. */
__attribute__((used, noinline)) static void child(const struct kmes_launch_orders* orders) {
    char go = 0;
    long error;

    /* With its own copy open, the child would never read the end of the socket. */
    call(SYS_close, orders->runner_socket, 0, 0, 0);
    call(SYS_setsid, 0, 0, 0, 0);
    /* Anything but one byte: the runner has gone. */
    if (call(SYS_read, orders->socket, (long)&go, 1, 0) == 1) {
        error = set_up(orders);
        if (error != 0) fail(orders->socket, error, 0, 0);
        execute(orders);
    }
    call(SYS_exit_group, KMES_LAUNCH_FAILED, 0, 0, 0);
}

/* glibc's clone would do, but a sanitizer may replace it. */
long kmes_launch_clone(void* stack_top, int* shares, const struct kmes_launch_orders* orders) {
    long result = SYS_clone;
    register int* r10 __asm__("r10") = shares;
    register const struct kmes_launch_orders* r12 __asm__("r12") = orders;
    register void (*r13)(const struct kmes_launch_orders*) __asm__("r13") = child;

    __asm__ volatile(
        "syscall\n\t"
        "test %%rax, %%rax\n\t"
        "jnz 1f\n\t"
        "xor %%ebp, %%ebp\n\t" /* the end of the child's backtrace */
        "mov %%r12, %%rdi\n\t"
        "call *%%r13\n\t"
        "ud2\n"
        "1:"
        : "+a"(result)
        : "D"((long)(CLONE_VM | CLONE_CHILD_CLEARTID | SIGCHLD)), "S"(stack_top), "d"(0L), "r"(r10),
          "r"(r12), "r"(r13)
        : "rcx", "r11", "memory", "cc");
    return result;
}
