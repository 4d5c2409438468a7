// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * kmes/abi.h, and kmes/call.h on it, as a kernel compiles them: gnu11, no headers of the system,
 * and stand-ins of the kernel's own types (kernel_stand_in).
 */
#include "kmes/call.h"
#include "kmes/tests/abi_table.h"

const unsigned abi_table_kernel[ABI_TABLE_ENTRIES] = ABI_TABLE;
