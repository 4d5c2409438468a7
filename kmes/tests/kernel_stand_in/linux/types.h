/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Stands in for the kernel's header of this name, with the few names that kmes/types.h takes from
 * it. */
#ifndef KMES_TESTS_STAND_IN_TYPES_H
#define KMES_TESTS_STAND_IN_TYPES_H
typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef _Bool bool;
#define true 1
#define false 0
#endif
