/* SPDX-License-Identifier: MIT */
/*
 * The child of a launch, from clone to execve. It runs in the runner's memory, in parallel to the
 * runner's threads, and has the thread pointer of one of them. Therefore it calls no function
 * outside of launch_child.c: no libc (errno belongs to the runner's thread), sanitizer, fuzzer or
 * coverage tool. It writes only to its own stack and to the results of its system calls.
 * launch_child_test.py checks the object code for that.
 */
#ifndef CONFORMANCE_TRACER_LAUNCH_CHILD_H_
#define CONFORMANCE_TRACER_LAUNCH_CHILD_H_

#include <linux/filter.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The descriptors 0 to this one are placed in the testee; this one is the report (launch.h). */
#define KMES_LAUNCH_LAST_FD 3
/* Exit status of a child that could not set itself up, or that never got the order to go. */
#define KMES_LAUNCH_FAILED 126

/* The orders of the child. They stay in place until the child has left this memory. */
struct kmes_launch_orders {
    int socket;        /* receives one byte, the order to go; sends a kmes_launch_failure */
    int runner_socket; /* the other end, which only the runner may keep open */
    int descriptors[KMES_LAUNCH_LAST_FD + 1]; /* each above KMES_LAUNCH_LAST_FD */
    int fixed_addresses;
    struct sock_fprog outer_filter; /* installed first; len 0: none */
    struct sock_fprog filter;
    char* const* candidates; /* this and the next two end with a null pointer */
    char* const* arguments;
    char* const* environment;
};

/* The failure that the child writes to the socket. */
struct kmes_launch_failure {
    int error;
    int at_exec; /* execve failed; 0: setting up failed */
    unsigned candidate;
};

/*
 * Creates a process in the memory of this one by clone(2). It runs on `stack_top` (16-byte aligned)
 * and follows `orders`. The kernel sets *shares to 0 when the child has left that memory, by execve
 * or by its end (CLONE_CHILD_CLEARTID). Returns the child's pid, or -errno.
 * Before: the caller has blocked every signal. Until the child resets the handlers, a signal would
 * run a handler of this process in its memory.
 */
long kmes_launch_clone(void* stack_top, int* shares, const struct kmes_launch_orders* orders);

#ifdef __cplusplus
}
#endif

#endif /* CONFORMANCE_TRACER_LAUNCH_CHILD_H_ */
