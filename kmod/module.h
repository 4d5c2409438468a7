/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The module's parameters, and the prefix of its messages. Include it before the headers that
 * print.
 */
#ifndef KMES_KMOD_MODULE_H
#define KMES_KMOD_MODULE_H

#include <linux/types.h>

#ifdef pr_fmt
#undef pr_fmt
#endif
#define pr_fmt(format) "kmes: " format

/* The values of the load, checked (main.c). */
struct kmes_parameters {
    unsigned long buffer_capacity; /* bytes, of each CPU's ring */
    unsigned long max_event_size;  /* bytes, of the emit calls */
    unsigned buffers_max;          /* limit of existing buffers, in total */
    bool boot_phase;               /* begin without rings (5.1.2) */
};

extern struct kmes_parameters kmes_parameters;

/* The current amounts, for the parameters that can be read back (memory.c). */
long kmes_memory_pages_live(void);
long kmes_memory_buffers_live(void);

#endif
