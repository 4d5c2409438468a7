// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * kmes/abi.h as a kernel compiles it: gnu11, no headers of the system, and the kernel's own types
 * (stand-ins of them, in kernel_stand_in).
 */
#include "kmes/tests/abi_table.h"

const unsigned abi_table_kernel[ABI_TABLE_ENTRIES] = ABI_TABLE;
