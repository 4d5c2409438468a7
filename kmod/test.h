/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The interface between the two files of a test build. test_device.c has the ioctls, and the
 * instance of an open file; test_operate.c has the actions of the verbs. They access the module
 * only by instance.h.
 *
 * Instance and CPUs are accessed under instance->lock. No memory of a process is copied under it: a
 * fault takes the mmap lock, which is the outer lock.
 */
#ifndef KMES_KMOD_TEST_H
#define KMES_KMOD_TEST_H

#include <linux/kmes_test.h>

#include "instance.h"

/* State of one CPU of a test instance that remains open from one ioctl to the next. */
struct kmes_test_cpu {
    struct kmes_batch batch;
    struct kmes_reservation reservation;
    struct kmes_swap swap;
    struct kmes_memory* next; /* referenced: the target of the swap in progress */
    bool has_batch;
    bool has_reservation;
    bool is_boot;
    bool is_over; /* the producer has ended */
};

/* The instance that an open file has made. It ends with the file. */
struct kmes_test {
    struct list_head in_tests;
    struct kmes_instance* instance;
    u32 id;
    struct kmes_test_cpu cpu[]; /* instance->cpus of them */
};

/* KMES_TEST_IOC_OPERATE, the part inside an instance. `operation` is the kernel's copy. Returns 0,
 * with the result in it, or an error. KMES_TEST_OPEN leaves the file in *file, without a
 * descriptor. */
int kmes_test_operate(struct kmes_test* test, struct kmes_test_operation* operation,
                      struct file** file);

/* True if memory for this many bytes may be requested: a test must not exhaust the machine. */
bool kmes_test_memory_is_there(u64 bytes);

/* Drops the unfinished actions of each CPU, and a prepared buffer. */
void kmes_test_drop(struct kmes_test* test);

#endif
