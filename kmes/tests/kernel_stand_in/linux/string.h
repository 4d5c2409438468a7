/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Stands in for the kernel's header of this name, with the few names that kmes/types.h takes from
 * it. */
#ifndef KMES_TESTS_STAND_IN_STRING_H
#define KMES_TESTS_STAND_IN_STRING_H
#endif
