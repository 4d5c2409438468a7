/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Stands in for the kernel's header of this name, with the few names that kmes/types.h takes from
 * it. */
#ifndef KMES_TESTS_STAND_IN_STDDEF_H
#define KMES_TESTS_STAND_IN_STDDEF_H
#define NULL ((void*)0)
#define offsetof(type, member) __builtin_offsetof(type, member)
#endif
