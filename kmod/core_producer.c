// SPDX-License-Identifier: GPL-2.0-only
/* The core's file, compiled in the module's folder because Kbuild cleans there. */
#include "../kmes/producer.c"
