/* SPDX-License-Identifier: MIT */
/*
 * The child of a launch, from clone to execve. It runs in the runner's memory, beside the runner's
 * threads and with the thread pointer of one of them. So it calls nothing outside of
 * launch_child.c, and writes nothing but its own stack and what a system call of its own writes:
 * no libc (errno belongs to the runner's thread) and no books of a sanitizer, a fuzzer or a
 * coverage tool. launch_child_test.py reads the object code for that.
 */
#ifndef CONFORMANCE_TRACER_LAUNCH_CHILD_H_
#define CONFORMANCE_TRACER_LAUNCH_CHILD_H_

#include <linux/filter.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The descriptors 0 to this one are placed in the testee; this one is the report (launch.h). */
#define KMES_LAUNCH_LAST_FD 3
/* Exit status of a child that could not set itself up, or that was not let go. */
#define KMES_LAUNCH_FAILED 126

/* What the child is to do. All of it stays where it is until the child has left this memory. */
struct kmes_launch_orders {
    int socket;        /* one byte comes: go on; a kmes_launch_failure goes back */
    int runner_socket; /* the other end, which only the runner may keep open */
    int descriptors[KMES_LAUNCH_LAST_FD + 1]; /* each above KMES_LAUNCH_LAST_FD */
    int fixed_addresses;
    struct sock_fprog outer_filter; /* installed first; len 0: none */
    struct sock_fprog filter;
    char* const* candidates; /* this and the next two end with a null pointer */
    char* const* arguments;
    char* const* environment;
};

/* What went wrong, as the child writes it to the socket. */
struct kmes_launch_failure {
    int error;
    int at_exec; /* execve; otherwise setting up */
    unsigned candidate;
};

/*
 * clone(2): a process of its own in the memory of this one, on `stack_top` (16-byte aligned), which
 * follows `orders`. *shares becomes 0 when it has left that memory (CLONE_CHILD_CLEARTID: by
 * execve, or by its end). The child's pid, or -errno. The caller has blocked every signal: one that
 * the child took before it has reset them would run a handler of this process, in its memory.
 */
long kmes_launch_clone(void* stack_top, int* shares, const struct kmes_launch_orders* orders);

#ifdef __cplusplus
}
#endif

#endif /* CONFORMANCE_TRACER_LAUNCH_CHILD_H_ */
