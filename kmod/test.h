/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the two files of a test build know of each other: test_device.c (the ioctls, which world an
 * open file has) and test_operate.c (what the verbs do). Knows the module by world.h alone.
 *
 * World and CPUs are looked at under world->lock. Nothing of a process is copied under it: a fault
 * takes the mmap lock, which is the outer one.
 */
#ifndef KMES_KMOD_TEST_H
#define KMES_KMOD_TEST_H

#include <linux/kmes_test.h>

#include "world.h"

/* What is open on one CPU of a test world, from one ioctl to the next. */
struct kmes_test_cpu {
    struct kmes_batch batch;
    struct kmes_reservation reservation;
    struct kmes_swap swap;
    struct kmes_memory* next; /* held: the swap that was begun moves to it */
    bool has_batch;
    bool has_reservation;
    bool is_boot;
    bool is_over; /* the producer has ended */
};

/* The world that an open file has made. Goes with the file. */
struct kmes_test {
    struct list_head in_tests;
    struct kmes_world* world;
    u32 id;
    struct kmes_test_cpu cpu[]; /* world->cpus of them */
};

/* KMES_TEST_IOC_OPERATE, as far as it is the world's: `operation` is the kernel's copy. 0, with the
 * result in it, or an error. KMES_TEST_OPEN leaves the file in *file, without a descriptor. */
int kmes_test_operate(struct kmes_test* test, struct kmes_test_operation* operation,
                      struct file** file);

/* Whether memory for so many bytes may be asked for: a test must not take the machine's. */
bool kmes_test_memory_is_there(u64 bytes);

/* What has not come to its end on a CPU does not: a prepared buffer goes. */
void kmes_test_drop(struct kmes_test* test);

#endif
